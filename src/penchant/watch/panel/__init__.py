"""The panel of a watch: further measures, chosen by `measure=`, taken at every look.

    edge          sharpness times learning rate over the threshold of this optimizer
    activations   size per unit, effective rank and dead units of every layer, collapse, D_LR
    updates       update over weight, rotation, effective rate, spectral norm, share of the ball
    noise         gradient noise scale, and the share of loss terms that round to zero
    balance       what gradient flow conserves between two layers, and its drift

Each is one instrument (penchant.watch.panel.instrument), whose numbers are pure functions of
arrays. It adds its numbers to the row of a look, and its seconds.
"""

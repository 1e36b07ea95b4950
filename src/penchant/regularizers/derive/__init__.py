"""derive: from a user's map beta = F(w) to the regularizer that gradient flow on w minimises.

`reparametrization` reads the map and its starts, `gradient_lines` follows w' = grad F(w) from many
starts at once, `branch` and `line_walk` read b(s) and its inverse off these lines, `symbolic` and
`closed_form` find formulas where there are any, and `derived` puts a regularizer together.
"""

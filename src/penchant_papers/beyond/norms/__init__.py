"""Steps in other norms: steepest flows, sharpness-aware minimization, Lion."""

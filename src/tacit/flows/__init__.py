"""How training moved before `training`; modules leave as the new way replaces them."""

"""Pictures of datasets: the style of all of them, and the drawings that no single paper owns."""

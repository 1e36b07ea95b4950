"""Real images: what sets there are, how they come into the cache folder, and how they are read."""

from tacit.problems.images.importing import import_images
from tacit.problems.images.load import Images, load_images

__all__ = ["Images", "import_images", "load_images"]

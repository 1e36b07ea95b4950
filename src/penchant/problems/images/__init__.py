"""Real images: the available sets, how they are stored in the cache folder and read from it."""

from penchant.problems.images.importing import import_images
from penchant.problems.images.load import Images, load_images

__all__ = ["Images", "import_images", "load_images"]

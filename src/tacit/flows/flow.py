"""The type of progress, for the methods that `training` has not taken over yet."""

from tacit.training.task import Progress as Progress

"""What a study reports while it runs."""

from penchant.lab.studies.engines.complete import RunProgress


class Recorder(RunProgress):
    """Keeps all reports; after `stop` cells the run is interrupted."""

    def __init__(self, stop=None):
        self.total, self.before, self.ended, self.messages = 0, [], [], []
        self.stop = stop

    def begin(self, total, finished):
        self.total, self.before = total, list(finished)

    def done(self, cells):
        self.ended += cells
        if self.stop and len(self.ended) >= self.stop:
            raise KeyboardInterrupt

    def aside(self, sentence):
        self.messages.append(sentence)

    def warn(self, sentence):
        self.messages.append(sentence)

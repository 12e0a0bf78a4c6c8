"""A thread of a soak run; the run sees if the thread fails."""

import threading


class Part(threading.Thread):
    """Runs work(). Any exception ends the thread, and `errors` then has it: a part that ends silently would pass a run
    in which nothing happens."""

    def __init__(self, title):
        super().__init__()
        self.title = title
        self.errors = []

    def run(self):
        try:
            self.work()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.errors.append(f"{self.title}: {type(error).__name__}: {error}")

    def work(self):
        raise NotImplementedError

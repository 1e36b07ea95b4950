"""Methods that go step by step: update rules, and the one compiled driver that runs them."""

"""Options of the test run."""


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the notebook cells marked '#| slow'")

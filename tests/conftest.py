"""Options of the test run."""


def pytest_addoption(parser):
    parser.addoption(
        "--slow", action="store_true", help="also run the notebook cells marked '#| slow'"
    )
    parser.addoption(
        "--exact",
        action="store_true",
        help="saved outputs must agree to the last digit (on the machine that made them)",
    )

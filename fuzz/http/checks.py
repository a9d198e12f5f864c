"""Checks that schemathesis does not have."""

import atexit
import os

import schemathesis

successes = 0


@schemathesis.check
def server_error_expected(_context, response, _case):
    """A server error is one that a caller expects of a cluster whose leader was killed."""
    global successes
    status = response.status_code
    successes += status < 300
    assert status < 500 or status in (503, 504), f"expected no server error but 503 and 504, but found {status}"


@atexit.register
def write_successes():
    """Reports how many calls succeeded: a cluster that refuses everything would match its description."""
    with open(os.environ["SUCCESSES_FILE"], "w", encoding="ascii") as file:
        file.write(str(successes))

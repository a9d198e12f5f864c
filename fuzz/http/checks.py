"""Checks that schemathesis does not have."""

import schemathesis


@schemathesis.check
def server_error_expected(_context, response, _case):
    """A server error is one that a caller expects of a cluster whose leader was killed."""
    status = response.status_code
    assert status < 500 or status in (503, 504), f"expected no server error but 503 and 504, but found {status}"

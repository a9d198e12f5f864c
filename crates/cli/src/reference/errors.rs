//! The page of error codes, from the tables of the server, the client and the command line.

use crate::code::Code;
use crate::failure::Exit;
use expect_test::expect_file;
use flotilla_client::{ClientCode, ErrorKind};
use flotilla_server::ErrorCode;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Errors

An error has a *code* for programs, one sentence for people (`expected to …, but …`) and often a hint on what to do.
`flo -o json` prints them on stderr:

```json
{\"error\": {\"code\": \"run_not_found\", \"message\": \"expected a run …\", \"hint\": \"`flo workflow runs` lists the runs\"}}
```

Over gRPC the code is the `reason` of `google.rpc.ErrorInfo`, the hint is in its metadata, malformed fields are in
`BadRequest`, and the time to wait before a retry is in `RetryInfo`. Over HTTP, the body is a problem (RFC 9457) whose
member `error` is the JSON object above; [the HTTP API](../http.md#errors) lists its other members.

This page is generated from the code, so it lists every code.

## Exit codes

| exit | meaning | what to do |
|---|---|---|
| 0 | done | |
| 1 | what the command names does not exist | check the name, and `-n` |
| 2 | bad usage: a flag, a file or a field is invalid | change the command |
| 3 | refused by validation or because of the cluster's state, or a bug in the server (`internal`) | change the definition or the state; for `internal`, report the bug |
| 4 | a temporary failure, or an unknown outcome | retry with the same key, id or token |
| 5 | no node could be reached | check `--endpoint`, and whether a server is running |
| 6 | this machine, or the server on it, failed | check its disk, its limits and the log |

With `--wait`, the exit code is 3 if the run did not complete.

## From the server

Where the last column is empty, what to do depends on the case: the hint of the error says it.

| code | gRPC status | HTTP status | exit | meaning | what to do |
|---|---|---|---|---|---|
";

const CLIENT: &str = "
## From the client

The Rust library, and so `flo`, detects these on the caller's side.

| code | exit | meaning |
|---|---|---|
";

const COMMAND_LINE: &str = "
## From the command line

| code | exit | meaning |
|---|---|---|
";

#[test]
fn the_page_of_errors_lists_the_codes() {
    let mut page = String::from(HEAD);
    for ErrorCode {
        name,
        status,
        http_status,
        meaning,
        hint,
    } in ErrorCode::all()
    {
        let exit = Exit::from(ErrorKind::of_status(status)).code();
        let hint = hint.unwrap_or_default();
        row(
            &mut page,
            &[
                &format!("`{name}`"),
                &format!("{status:?}"),
                &http_status.to_string(),
                &exit.to_string(),
                meaning,
                hint,
            ],
        );
    }
    page.push_str(CLIENT);
    for code in ClientCode::ALL {
        let exit = Exit::from(code.kind()).code();
        row(
            &mut page,
            &[&format!("`{code}`"), &exit.to_string(), code.meaning()],
        );
    }
    page.push_str(COMMAND_LINE);
    let mut local: BTreeMap<(&str, u8), &str> = BTreeMap::new();
    for code in Code::ALL {
        local.insert((code.as_str(), code.exit().code()), code.meaning());
    }
    for ((code, exit), meaning) in local {
        row(
            &mut page,
            &[&format!("`{code}`"), &exit.to_string(), meaning],
        );
    }
    expect_file!["../../../../docs/manual/reference/errors.md"].assert_eq(&page);
}

fn row(page: &mut String, cells: &[&str]) {
    writeln!(page, "| {} |", cells.join(" | ")).expect("a string takes any text");
}

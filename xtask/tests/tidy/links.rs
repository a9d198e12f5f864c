//! Links in documents lead to something that is there.

use std::path::Path;

use crate::tree::{Finding, Source, expect_lines, expect_none, root, sources};

#[test]
fn every_relative_link_in_a_document_resolves() {
    expect_none(&sources(&[".md"]), |source| {
        dead_links(source, |path| root().join(path).exists())
    });
}

fn dead_links(source: &Source, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let folder = Path::new(&source.path)
        .parent()
        .expect("a file has a folder");
    let mut findings = Vec::new();
    for (number, target) in links(source) {
        let path = target.split('#').next().unwrap_or_default();
        let is_elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
        if !is_elsewhere && !exists(&folder.join(path)) {
            findings.push(source.finding(
                number,
                format!("the link leads to `{target}`, which is not there"),
            ));
        }
    }
    findings
}

/// The targets of `[text](target)` and `[name]: target`, outside of code.
fn links(source: &Source) -> Vec<(usize, &str)> {
    let mut inside_fence = false;
    let mut links = Vec::new();
    for (number, line) in source.lines() {
        if line.trim_start().starts_with("```") {
            inside_fence = !inside_fence;
        } else if !inside_fence {
            let targets = inline_targets(line)
                .into_iter()
                .chain(reference_target(line));
            links.extend(targets.map(|target| (number, target)));
        }
    }
    links
}

fn inline_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (start, opening) in line.match_indices("](") {
        let is_code = line[..start].matches('`').count() % 2 == 1;
        let rest = &line[start + opening.len()..];
        if let Some((target, _)) = rest.split_once(')').filter(|_| !is_code) {
            targets.push(without_title(target));
        }
    }
    targets
}

fn reference_target(line: &str) -> Option<&str> {
    let (_, target) = line.strip_prefix('[')?.split_once("]: ")?;
    Some(without_title(target))
}

/// Cuts off the title of `target "title"` and the brackets of `<target>`.
fn without_title(target: &str) -> &str {
    let target = target.split_whitespace().next().unwrap_or_default();
    target.trim_start_matches('<').trim_end_matches('>')
}

#[test]
fn planted_dead_links_are_found() {
    let text = "\
[here](a.md) and [gone](b.md#part)
[elsewhere](https://example.org/b.md), [below](#part), `[code](b.md)`
![picture](../b.png \"title\")
```
[code](b.md)
```
[name]: <b.md>
";
    let planted = Source::planted("docs/x.md", text);
    let rule = |source: &Source| dead_links(source, |path| path == Path::new("docs/a.md"));
    expect_lines(rule, &planted, &[1, 3, 7]);
}

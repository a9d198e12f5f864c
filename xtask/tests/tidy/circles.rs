//! The files of the engine form no large import cycle: upper layers import lower ones, not the other way round.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_text;
use crate::tree::{Source, sources};

const ROOT: &str = "crates/engine/src/";

/// The maximum size of a cycle; the largest one has groups, streams and triggers.
const FILES_MAX: usize = 12;

/// A path such as `["run", "advance"]`, relative to the crate.
type Path = Vec<String>;

/// The paths of its crate that a file names.
#[derive(Default)]
struct Imports {
    uses: Vec<Path>,
    /// The name under which it is exported.
    exports: BTreeMap<String, Path>,
}

/// The path of its definition.
#[derive(Clone, Copy)]
struct Place<'a> {
    module: &'a Path,
    known: &'a BTreeSet<Path>,
}

#[test]
fn the_engine_has_no_large_circle_of_imports() {
    let files = sources(&[".rs"]).into_iter();
    let files: Vec<Source> = files
        .filter(|source| source.path.starts_with(ROOT))
        .collect();
    let circle = largest_circle(&files);
    assert!(
        circle.len() <= FILES_MAX,
        "expected cycles of at most {FILES_MAX} files, but these {} import each other: {circle:?}",
        circle.len()
    );
}

/// The files that import each other, directly or indirectly.
fn largest_circle(files: &[Source]) -> Vec<String> {
    let known: BTreeSet<Path> = files.iter().map(|source| module(&source.path)).collect();
    let modules: BTreeMap<Path, Imports> = files
        .iter()
        .map(|source| {
            let module = module(&source.path);
            let place = Place {
                module: &module,
                known: &known,
            };
            let imports = imports(source, place);
            (module, imports)
        })
        .collect();
    let arrows: BTreeMap<&Path, BTreeSet<&Path>> = modules
        .iter()
        .filter(|(module, _)| !module.is_empty())
        .map(|(module, imports)| {
            let uses = imports
                .uses
                .iter()
                .filter_map(|path| resolve(&modules, path));
            (module, uses.filter(|used| *used != module).collect())
        })
        .collect();
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = arrows
        .keys()
        .map(|from| (*from, reach(&arrows, from)))
        .collect();
    let circle_of = |from: &&Path| -> Vec<String> {
        let there = reached[*from].iter();
        let there = there.filter(|to| reached.get(**to).is_some_and(|back| back.contains(*from)));
        there.map(|module| module.join("::")).collect()
    };
    let circles = arrows.keys().map(circle_of);
    circles.max_by_key(Vec::len).unwrap_or_default()
}

/// All modules that a module reaches.
fn reach<'a>(
    arrows: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
    from: &'a Path,
) -> BTreeSet<&'a Path> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if found.insert(*next) {
                open.push(next);
            }
        }
    }
    found
}

/// The file that defines the last name of a path, behind re-exports.
fn resolve<'a>(modules: &'a BTreeMap<Path, Imports>, path: &[String]) -> Option<&'a Path> {
    let mut path = path.to_vec();
    // Chains of re-exports are short.
    for _ in 0..8 {
        let length = (0..=path.len()).rev();
        let mut found = length.filter_map(|length| modules.get_key_value(&path[..length]));
        let (module, imports) = found.next()?;
        let exported = path
            .get(module.len())
            .and_then(|name| imports.exports.get(name));
        match exported {
            Some(target) => path = [target, &path[module.len() + 1..]].concat(),
            None => return Some(module),
        }
    }
    None
}

/// The module of a file: `run/advance.rs` is `run::advance`, `run/mod.rs` is `run`.
fn module(path: &str) -> Path {
    let path = path.strip_prefix(ROOT).unwrap_or(path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let parts = path.split('/').map(str::to_owned);
    parts
        .filter(|part| part != "mod" && part != "lib")
        .collect()
}

fn imports(source: &Source, place: Place<'_>) -> Imports {
    let lines = rust_text::lines(source).into_iter().map(|line| line.code);
    let lines = lines.take_while(|code| !code.contains("#[cfg(test)]"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut imports = Imports::default();
    let mut body = String::new();
    for statement in code.split_inclusive(';') {
        let Some((before, tree)) = statement.rsplit_once("use ") else {
            body.push_str(statement);
            continue;
        };
        let is_import = before.is_empty() || before.ends_with(['\n', ' ']);
        let paths = paths(tree.trim_end_matches(';'));
        for path in paths.into_iter().filter(|_| is_import) {
            let Some(path) = place.absolute(&path) else {
                continue;
            };
            match path.last() {
                Some(name) if before.trim_end().ends_with(['b', ')']) => {
                    imports.exports.insert(name.clone(), path);
                }
                _ => imports.uses.push(path),
            }
        }
        body.push_str(before);
    }
    add_paths_in_code(&body, place, &mut imports);
    imports
}

/// Paths in the code: `crate::a::b`, and `a::b` if `a` is an imported module.
fn add_paths_in_code(body: &str, place: Place<'_>, imports: &mut Imports) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let named: Vec<Path> = imports.uses.clone();
    for word in body.split(|c: char| !is_part(c)) {
        let parts: Path = word.split("::").map(str::to_owned).collect();
        if parts.len() < 2 {
            continue;
        }
        match place.absolute(&parts) {
            Some(path) => imports.uses.push(path),
            None => {
                let known = named.iter().find(|path| path.last() == parts.first());
                let known = known.map(|path| [path, &parts[1..]].concat());
                imports.uses.extend(known);
            }
        }
    }
}

impl Place<'_> {
    /// A path relative to the crate; `None` for a path of another crate.
    fn absolute(self, path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Path::new(),
            "self" | "super" => self.module.clone(),
            child => [self.module, &[child.to_owned()][..]].concat(),
        };
        let mut rest = rest;
        match first.as_str() {
            "super" => {
                base.pop()?;
                while let Some(("super", further)) = rest
                    .split_first()
                    .map(|(first, rest)| (first.as_str(), rest))
                {
                    base.pop()?;
                    rest = further;
                }
            }
            "crate" | "self" => {}
            _ if self.known.contains(&base) => {}
            _ => return None,
        }
        base.extend_from_slice(rest);
        Some(base)
    }
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<Path> {
    let (mut found, mut prefixes, mut name) = (Vec::new(), vec![Path::new()], String::new());
    let mut prefix = Path::new();
    for character in tree.chars().chain([',']) {
        match character {
            '{' => prefixes.push(prefix.clone()),
            ',' | '}' => {
                let name = std::mem::take(&mut name);
                let name = name.trim().split(" as ").next().unwrap_or_default();
                match name {
                    "" => {}
                    "self" => found.push(prefix.clone()),
                    name => found.push([&prefix[..], &[name.to_owned()]].concat()),
                }
                if character == '}' {
                    prefixes.pop();
                }
                prefix = prefixes.last().cloned().unwrap_or_default();
            }
            ':' if !name.is_empty() => prefix.push(std::mem::take(&mut name).trim().to_owned()),
            ':' => {}
            other => name.push(other),
        }
    }
    found
}

#[test]
fn use_trees_are_read() {
    let read: Vec<String> = paths("crate::a::{b, c::{self, d as e}, f}")
        .iter()
        .map(|path| path.join("::"))
        .collect();
    assert_eq!(
        read,
        [
            "crate::a::b",
            "crate::a::c",
            "crate::a::c::d",
            "crate::a::f"
        ]
    );
}

#[test]
fn a_planted_circle_is_found() {
    let file = |name: &str, text: &str| Source::planted(&format!("{ROOT}{name}"), text);
    let files = [
        file("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
        file("a.rs", "use crate::b::{One, Two};\n"),
        file(
            "b/mod.rs",
            "mod inner;\npub(crate) use inner::Two;\npub struct One;\n",
        ),
        file("b/inner.rs", "use crate::c;\nfn x() { c::three() }\n"),
        file("c.rs", "fn three() { crate::a::four() }\n"),
        file("d.rs", "use crate::a::four;\n// crate::d\n"),
    ];
    assert_eq!(largest_circle(&files), ["a", "b::inner", "c"]);
}

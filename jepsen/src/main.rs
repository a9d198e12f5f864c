//! `flotilla-jepsen`: runs chaos tests; `cargo xtask jepsen` builds and calls it.

use clap::Parser;
use flotilla_jepsen::abuse::{self, AttackResult};
use flotilla_jepsen::drill;
use flotilla_jepsen::history::{History, Outcome};
use flotilla_jepsen::nemesis::{self, Nemesis};
use flotilla_jepsen::planted::PLANTED;
use flotilla_jepsen::release;
use flotilla_jepsen::report::{self, Part, Report};
use flotilla_jepsen::run::{Pace, Plan, run};
use flotilla_jepsen::workload::{self, Workload};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long an attack lasts.
const ATTACK: Duration = Duration::from_secs(15);

/// Runs clients against a cluster of real processes while faults happen, and checks what they saw.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask jepsen")]
struct Arguments {
    /// How long clients work in total; each nemesis gets an equal share
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Repeats the decisions of this seed; random if absent
    #[arg(long)]
    seed: Option<u64>,
    /// Only these workloads; all if absent
    #[arg(long, value_delimiter = ',')]
    workload: Vec<String>,
    /// Only these nemeses; `all` for each in turn
    #[arg(long, value_delimiter = ',', default_value = "combined")]
    nemesis: Vec<String>,
    /// Plants a bug in the nodes, which the checkers must find
    #[arg(long)]
    bug: Option<String>,
    /// Runs these drills, operators' procedures, once each instead; `all` for every one
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    drill: Option<Vec<String>>,
    /// Attacks a cluster with these, once each instead; `all` for every one
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    abuse: Option<Vec<String>>,
    /// Plants each bug in turn instead, and prints how soon it is found
    #[arg(long)]
    planted: bool,
    /// Writes the figures into the generated part of this document
    #[arg(long)]
    report: Option<PathBuf>,
    /// Where history, logs and timeline are kept
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Keeps history, logs and timeline also when every check passes
    #[arg(long)]
    keep: bool,
    /// Checks a kept history.jsonl again and draws its timeline beside it, instead of running
    #[arg(long)]
    judge: Option<PathBuf>,
    /// Records the data of this release in this folder, to test upgrades from it, instead of running
    #[arg(long, value_name = "DIR")]
    record_release_data: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match act(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the command; true if every check passed.
fn act(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    if let Some(folder) = &arguments.record_release_data {
        return record(folder);
    }
    if let Some(file) = &arguments.judge {
        return judge(arguments, file);
    }
    if arguments.planted {
        return find_planted(arguments);
    }
    if let Some(names) = &arguments.abuse {
        return attack(arguments, names);
    }
    match &arguments.drill {
        Some(names) => drill(arguments, names),
        None => storm(arguments),
    }
}

fn record(folder: &Path) -> Result<bool, Box<dyn Error>> {
    let manifest = release::record(folder)?;
    println!(
        "recorded, served once, and described by {}",
        manifest.display()
    );
    Ok(true)
}

/// Runs each nemesis in turn; true if every check passed.
fn storm(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let nemeses = nemeses(&arguments.nemesis)?;
    let share = arguments.seconds / u64::try_from(nemeses.len())?.max(1);
    let reports = play(arguments, nemeses, Pace::storm(Duration::from_secs(share)))?;
    write_report(arguments, Part::Figures, &report::figures(&reports))?;
    Ok(reports.iter().all(Report::is_sound))
}

/// Attacks a cluster with each of them; true if it withstands all.
fn attack(arguments: &Arguments, names: &[String]) -> Result<bool, Box<dyn Error>> {
    let mut results = Vec::new();
    for mut abuse in abuse::named(names)? {
        let result = abuse::run(abuse.as_mut(), ATTACK);
        println!("{result}\n");
        results.push(result);
    }
    let table = abuse::table(&results);
    println!("{table}");
    write_report(arguments, Part::Attacks, &table)?;
    Ok(results.iter().all(AttackResult::is_sound))
}

/// Runs each drill once; true if every check passed and no call failed.
fn drill(arguments: &Arguments, names: &[String]) -> Result<bool, Box<dyn Error>> {
    let reports = play(arguments, drills(names)?, Pace::drill())?;
    let table = drill::table(&reports);
    println!("{table}");
    write_report(arguments, Part::Drills, &format!("```text\n{table}```\n"))?;
    let is_clean = |report: &Report| {
        report.is_sound() && report.count(Outcome::Fail) + report.count(Outcome::Unknown) == 0
    };
    Ok(reports.iter().all(is_clean))
}

/// Runs each of them.
fn play(
    arguments: &Arguments,
    nemeses: Vec<Box<dyn Nemesis>>,
    pace: Pace,
) -> Result<Vec<Report>, Box<dyn Error>> {
    let seed = arguments
        .seed
        .unwrap_or_else(|| rand::random_range(0..1_000_000));
    let mut reports: Vec<Report> = Vec::new();
    for nemesis in nemeses {
        let name = format!("flotilla-jepsen-{seed}-{}", nemesis.name());
        let report = run(Plan {
            workloads: workloads(&arguments.workload)?,
            seed,
            pace,
            recovery_max: Duration::from_secs(10),
            bug: arguments.bug.clone(),
            folder: arguments
                .folder
                .clone()
                .unwrap_or_else(std::env::temp_dir)
                .join(name),
            keep: arguments.keep,
            nemesis,
        });
        println!("{report}\n");
        reports.push(report);
    }
    Ok(reports)
}

/// Plants each bug in turn; true if all are found.
fn find_planted(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let folder = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let mut found = Vec::new();
    for planted in PLANTED {
        let one = planted.find(&folder.join("flotilla-jepsen-planted"));
        match &one {
            Some(one) => println!("{} was found: {}\n", planted.bug, one.said),
            None => println!("{} WAS NOT FOUND\n", planted.bug),
        }
        found.extend(one);
    }
    write_report(arguments, Part::Planted, &report::planted(&found))?;
    Ok(found.len() == PLANTED.len())
}

fn write_report(arguments: &Arguments, part: Part, table: &str) -> Result<(), Box<dyn Error>> {
    let Some(file) = &arguments.report else {
        return Ok(());
    };
    let document = fs::read_to_string(file)?;
    Ok(fs::write(file, report::rewrite(&document, part, table))?)
}

fn judge(arguments: &Arguments, file: &Path) -> Result<bool, Box<dyn Error>> {
    let history = History::parse(&fs::read_to_string(file)?)?;
    fs::write(file.with_extension("svg"), report::draw(&history))?;
    let mut is_sound = true;
    for workload in workloads(&arguments.workload)? {
        if history.final_reads.contains_key(workload.name()) {
            for violation in workload.check(&history) {
                is_sound = false;
                println!("{}: {violation}", workload.name());
            }
        }
    }
    Ok(is_sound)
}

fn workloads(names: &[String]) -> Result<Vec<Arc<dyn Workload>>, String> {
    let all = workload::all();
    if names.is_empty() {
        return Ok(all);
    }
    let known: Vec<&str> = all.iter().map(|workload| workload.name()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!(
            "expected workloads of {known:?}, but got `{unknown}`"
        ));
    }
    let is_named = |workload: &Arc<dyn Workload>| names.iter().any(|name| name == workload.name());
    Ok(all.into_iter().filter(is_named).collect())
}

fn drills(names: &[String]) -> Result<Vec<Box<dyn Nemesis>>, String> {
    if names.iter().any(|name| name == "all") {
        return Ok(drill::all());
    }
    let named = |name: &String| {
        drill::named(name).ok_or_else(|| {
            let known: Vec<&str> = drill::all().iter().map(|drill| drill.name()).collect();
            format!("expected drills of {known:?}, but got `{name}`")
        })
    };
    names.iter().map(named).collect()
}

fn nemeses(names: &[String]) -> Result<Vec<Box<dyn Nemesis>>, String> {
    if names.iter().any(|name| name == "all") {
        return Ok(nemesis::all());
    }
    let named = |name: &String| {
        nemesis::named(name).ok_or_else(|| {
            let known: Vec<&str> = nemesis::all()
                .iter()
                .map(|nemesis| nemesis.name())
                .collect();
            format!("expected nemeses of {known:?}, but got `{name}`")
        })
    };
    names.iter().map(named).collect()
}

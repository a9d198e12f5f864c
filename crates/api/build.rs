//! Generates the messages and services from `proto/`, without `protoc`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

const PROTO_DIRECTORY: &str = "../../proto";
const FILES: [&str; 9] = [
    "flotilla/v1/common.proto",
    "flotilla/v1/workflow.proto",
    "flotilla/v1/action.proto",
    "flotilla/v1/plan.proto",
    "flotilla/v1/worker.proto",
    "flotilla/v1/cluster.proto",
    "flotilla/v1/kv.proto",
    "flotilla/v1/namespace.proto",
    "flotilla/v1/stream.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO_DIRECTORY}");
    let mut compiler = protox::Compiler::new([PROTO_DIRECTORY])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(FILES)?;

    let output = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        output.join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;

    // `Bytes` shares a payload with its receive buffer; `BTreeMap` keeps a stable order.
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .build_transport(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

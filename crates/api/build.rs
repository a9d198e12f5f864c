//! Generates the messages and services from `proto/`, without `protoc`.

use prost_reflect::{DescriptorPool, MessageDescriptor};
use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const PROTO_DIRECTORY: &str = "../../proto";
/// The option of methods that says what they need of their callers.
const ROUTE: &str = "flotilla.rest.route";
const FILES: [&str; 10] = [
    "flotilla/v1/common.proto",
    "flotilla/v1/workflow.proto",
    "flotilla/v1/action.proto",
    "flotilla/v1/plan.proto",
    "flotilla/v1/worker.proto",
    "flotilla/v1/cluster.proto",
    "flotilla/v1/kv.proto",
    "flotilla/v1/access.proto",
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

    fs::write(
        output.join("permissions.rs"),
        permissions(&compiler.descriptor_pool())?,
    )?;

    fs::write(
        output.join("named_namespaces.rs"),
        named_namespaces(&compiler.descriptor_pool())?,
    )?;

    // `Bytes` shares a payload with its receive buffer; `BTreeMap` keeps a stable order.
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .build_transport(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

/// The namespace that each request names, as implementations of `NamespacedRequest`.
fn named_namespaces(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let methods = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let requests: BTreeMap<String, MessageDescriptor> = methods
        .map(|method| (method.input().name().to_owned(), method.input()))
        .collect();
    let mut implementations = String::new();
    for (name, request) in requests {
        // The requests about a namespace itself call it `name`.
        let field = match name.as_str() {
            "CreateNamespaceRequest" | "DeleteNamespaceRequest" => "name",
            _ => "namespace",
        };
        let named = match request.get_field_by_name(field) {
            // Without a namespace, these act in that of the definition.
            Some(_) if ["CreateWorkflowRequest", "ValidateWorkflowRequest"].contains(&&*name) => {
                format!("Some(&*self.{field}).filter(|name| !name.is_empty())")
            }
            Some(_) => format!("Some(&self.{field})"),
            None => "None".to_owned(),
        };
        write!(
            implementations,
            "impl NamespacedRequest for v1::{name} {{ fn named_namespace(&self) -> Option<&str> {{ {named} }} }}"
        )?;
    }
    Ok(implementations)
}

/// The table of what each method needs of its caller, as Rust code.
fn permissions(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let route = pool
        .get_extension_by_name(ROUTE)
        .ok_or_else(|| format!("expected the option {ROUTE}, but it is not defined"))?;
    let mut rows = String::from("[");
    for service in pool.services() {
        for method in service.methods() {
            let options = method.options();
            let route = options.get_extension(&route);
            let route = route
                .as_message()
                .ok_or("expected the option to be a message")?;
            let permission = route.get_field_by_name("permission");
            let permission = permission.as_ref().and_then(|value| value.as_str());
            let Some(permission) = permission.filter(|text| !text.is_empty()) else {
                let name = method.full_name();
                return Err(format!("expected {name} to say which permission it needs").into());
            };
            let path = format!("/{}/{}", service.full_name(), method.name());
            write!(rows, "({path:?}, {permission:?}),")?;
        }
    }
    Ok(rows + "]")
}

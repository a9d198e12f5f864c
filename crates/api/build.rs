//! Generates the messages and services from `proto/`, without `protoc`.

#[path = "src/descriptors.rs"]
#[expect(unreachable_pub, reason = "the library exports what it has")]
mod descriptors;

use descriptors::{camel_case, has_option, snake_case};
use prost_reflect::{
    DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const PROTO_DIRECTORY: &str = "../../proto";
/// The option of methods that says what they need of their callers.
const ROUTE: &str = "flotilla.rest.route";
/// The option of fields that says which of them hold payloads.
const FIELD: &str = "flotilla.rest.field";
/// The option of methods that gives their paths over HTTP.
const HTTP: &str = "google.api.http";
const FILES: [&str; 11] = [
    "flotilla/v1/common.proto",
    "flotilla/v1/workflow.proto",
    "flotilla/v1/action.proto",
    "flotilla/v1/plan.proto",
    "flotilla/v1/worker.proto",
    "flotilla/v1/cluster.proto",
    "flotilla/v1/kv.proto",
    "flotilla/v1/access.proto",
    "flotilla/v1/namespace.proto",
    "flotilla/v1/quota.proto",
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

    fs::write(output.join("reads.rs"), reads(&compiler.descriptor_pool())?)?;

    fs::write(
        output.join("named_namespaces.rs"),
        named_namespaces(&compiler.descriptor_pool())?,
    )?;

    fs::write(
        output.join("redactions.rs"),
        redactions(&compiler.descriptor_pool())?,
    )?;

    // `Bytes` shares a payload with its receive buffer; `BTreeMap` keeps a stable order.
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .build_transport(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

fn methods(pool: &DescriptorPool) -> impl Iterator<Item = MethodDescriptor> {
    pool.services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
}

/// The namespace that each request names, as implementations of `NamespacedRequest`.
fn named_namespaces(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let requests: BTreeMap<String, MessageDescriptor> = methods(pool)
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
    for method in methods(pool) {
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
        write!(rows, "({:?}, {permission:?}),", path(&method))?;
    }
    Ok(rows + "]")
}

/// The list of the methods that read and whose response is one message, as Rust code: those that HTTP calls with GET.
fn reads(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let http = pool
        .get_extension_by_name(HTTP)
        .ok_or_else(|| format!("expected the option {HTTP}, but it is not defined"))?;
    let mut rows = String::from("[");
    for method in methods(pool).filter(|method| !method.is_server_streaming()) {
        let options = method.options();
        let rule = options.get_extension(&http);
        let is_get = rule
            .as_message()
            .is_some_and(|rule| rule.has_field_by_name("get"));
        if is_get {
            write!(rows, "{:?},", path(&method))?;
        }
    }
    Ok(rows + "]")
}

/// The path of the method's calls.
fn path(method: &MethodDescriptor) -> String {
    let service = method.parent_service();
    format!("/{}/{}", service.full_name(), method.name())
}

/// Implementations of `Redact` for all responses and for the messages in them.
fn redactions(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let field = pool
        .get_extension_by_name(FIELD)
        .ok_or_else(|| format!("expected the option {FIELD}, but it is not defined"))?;
    let mut implementations = BTreeMap::new();
    for method in methods(pool) {
        add_redaction(&field, &method.output(), &mut implementations)?;
    }
    Ok(implementations.into_values().collect())
}

/// Adds the implementations of the message and of those in it, by their names.
fn add_redaction(
    option: &ExtensionDescriptor,
    message: &MessageDescriptor,
    implementations: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    let name = message.name().to_owned();
    if implementations.contains_key(&name) {
        return Ok(());
    }
    // A message may contain itself.
    implementations.insert(name.clone(), String::new());
    let mut statements = String::new();
    for field in message.fields() {
        if has_option(&field, option, "payload") {
            writeln!(statements, "self.r#{} = Default::default();", field.name())?;
            continue;
        }
        let kind = match field.kind() {
            Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
            kind => kind,
        };
        if let Kind::Message(inner) = kind {
            add_redaction(option, &inner, implementations)?;
            statements.push_str(&inner_redaction(message, &field));
        }
    }
    if message.get_field_by_name("redacted").is_some() {
        statements.push_str("self.redacted = true;\n");
    }
    let implementation =
        format!("impl Redact for v1::{name} {{ fn redact(&mut self) {{ {statements} }} }}");
    implementations.insert(name, implementation);
    Ok(())
}

/// The statement that redacts the messages in a field.
fn inner_redaction(message: &MessageDescriptor, field: &FieldDescriptor) -> String {
    let choice = field
        .containing_oneof()
        .filter(|oneof| !oneof.is_synthetic());
    if let Some(choice) = choice {
        let (module, member) = (snake_case(message.name()), choice.name());
        let (choices, variant) = (camel_case(member), camel_case(field.name()));
        return format!(
            "if let Some(v1::{module}::{choices}::{variant}(inner)) = &mut self.r#{member} {{ inner.redact(); }}\n"
        );
    }
    let inner = match field.is_map() {
        true => "values_mut",
        false => "iter_mut",
    };
    let name = field.name();
    format!("for inner in self.r#{name}.{inner}() {{ inner.redact(); }}\n")
}

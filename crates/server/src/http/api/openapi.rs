//! The description of the API in OpenAPI 3.1, from the routes and from the comments in `proto/` (H16).

use super::route::Route;
use crate::errors::ErrorCode;
use flotilla_api::descriptors::camel_case;
use flotilla_api::json::{BASE64_SUFFIX, FieldForm, enum_words, form_of};
use prost_reflect::{
    Cardinality, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor,
    MethodDescriptor,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Where a parameter is: a field that the path or the query sets, not the body.
const IN_PATH: &str = "path";
const IN_QUERY: &str = "query";

/// The description, as JSON. It depends only on the code.
#[must_use]
pub fn openapi() -> Value {
    let routes = Route::all();
    let mut document = Document::new(&routes);
    let mut paths = Map::new();
    for route in routes {
        let path = route.path.replace("=**}", "}");
        let operations = paths.entry(path).or_insert_with(|| json!({}));
        let operation = document.operation(&route);
        if let Value::Object(operations) = operations {
            operations.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Flotilla",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Workflows, runs, actions, workers, streams and keys of a Flotilla cluster. Any node serves any call.",
        },
        "servers": [{"url": "http://localhost:9002", "description": "A node of `flo dev`."}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "flo_…"},
            },
            "schemas": document.schemas(),
            "responses": {"Problem": {
                "description": "Why the request was refused. Programs should compare `code`.",
                "content": {"application/problem+json": {"schema": reference("Problem")}},
            }},
        },
    })
}

/// Where a message stands. A response has all its fields; a request has the fields that its sender gives, and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Request,
    Response,
}

/// The schemas that the operations need.
struct Document {
    /// The messages in responses.
    in_responses: BTreeSet<String>,
    /// The names of the schemas that exist, or are being made.
    names: BTreeSet<String>,
    schemas: Map<String, Value>,
}

impl Document {
    fn new(routes: &[Route]) -> Self {
        let mut in_responses = BTreeSet::new();
        for route in routes {
            add_messages(&route.response, &mut in_responses);
        }
        Self {
            in_responses,
            names: BTreeSet::new(),
            schemas: Map::new(),
        }
    }

    fn operation(&mut self, route: &Route) -> Value {
        let method = &route.rpc;
        let comment = comment(&method.parent_file(), method.path());
        let status = route.success_status().as_u16().to_string();
        let mut operation = json!({
            "operationId": operation_id(route),
            "summary": first_sentence(&comment),
            "description": comment,
            "tags": [tag(method)],
            "x-flo-permission": route.permission,
            "x-flo-rpc": route.call_path,
            "parameters": self.parameters(route),
            "responses": {
                "default": {"$ref": "#/components/responses/Problem"},
            },
        });
        let (media_type, schema) = match route.is_event_stream {
            true => ("text/event-stream", json!({"type": "string"})),
            false => (
                "application/json",
                self.message(&route.response, Place::Response),
            ),
        };
        let success = json!({
            "description": description(&route.response),
            "content": {media_type: {"schema": schema}},
        });
        operation["responses"][&status] = success.clone();
        if status != "200" {
            operation["responses"]["200"] = success;
        }
        if route.is_read() && !route.is_event_stream {
            let text = "The response has one of the entity tags in `If-None-Match`.";
            operation["responses"]["304"] = json!({"description": text});
        }
        if route.has_body {
            operation["requestBody"] = self.body(route);
        }
        operation
    }

    fn parameters(&mut self, route: &Route) -> Value {
        let fields = route.request.fields();
        let fields: Vec<FieldDescriptor> = fields
            .filter(|field| form_of(field) != FieldForm::Omitted)
            .filter(|field| {
                let is_variable = route.variables.iter().any(|name| name == field.name());
                is_variable || (!route.has_body && !matches!(field.kind(), Kind::Message(_)))
            })
            .collect();
        let mut parameters: Vec<Value> = fields
            .iter()
            .map(|field| {
                let is_variable = route.variables.iter().any(|name| name == field.name());
                json!({
                    "name": field.name(),
                    "in": if is_variable { IN_PATH } else { IN_QUERY },
                    "required": is_variable,
                    "description": comment(&field.parent_message().parent_file(), field.path()),
                    "schema": self.parameter_schema(field, is_variable),
                })
            })
            .collect();
        parameters.push(json!({
            "name": "Flo-Timeout-Ms", "in": "header", "required": false,
            "description": "The timeout of the call, in milliseconds.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 3_600_000},
        }));
        if route.request.get_field_by_name("request_id").is_some() {
            parameters.push(json!({
                "name": "Idempotency-Key", "in": "header", "required": false,
                "description": "Requests with the same key are applied once. Send a retry with the key of the first attempt.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }));
        }
        parameters.extend(conditions(route));
        parameters.into()
    }

    fn parameter_schema(&mut self, field: &FieldDescriptor, is_variable: bool) -> Value {
        let mut schema = match field.is_list() {
            true => {
                let items = self.single(field, &field.kind(), Place::Request);
                json!({"type": "array", "items": items})
            }
            false => match field.kind() {
                Kind::Bytes => json!({"type": "string"}),
                kind => self.single(field, &kind, Place::Request),
            },
        };
        if is_variable && schema["type"] == "string" {
            schema["minLength"] = 1.into();
        }
        schema
    }

    fn body(&mut self, route: &Route) -> Value {
        let mut properties = Map::new();
        for field in route.request.fields() {
            let is_variable = route.variables.iter().any(|name| name == field.name());
            if !is_variable {
                self.add_property(&mut properties, &field, Place::Request);
            }
        }
        let schema = json!({
            "type": "object",
            "properties": properties,
            "allOf": required(route),
            "additionalProperties": false,
        });
        let mut content = json!({"application/json": {"schema": schema}});
        for media_type in route.media_types().iter().skip(1) {
            content[*media_type] = json!({"schema": {"type": "string"}});
        }
        json!({"required": !route.required.is_empty(), "content": content})
    }

    /// The schema of a message, by reference.
    fn message(&mut self, message: &MessageDescriptor, place: Place) -> Value {
        let is_in_both = place == Place::Request && self.in_responses.contains(message.name());
        let name = match is_in_both {
            true => format!("{}Input", message.name()),
            false => message.name().to_owned(),
        };
        if self.names.insert(name.clone()) {
            let mut properties = Map::new();
            for field in message.fields() {
                self.add_property(&mut properties, &field, place);
            }
            let mut schema = json!({
                "type": "object",
                "description": description(message),
            });
            match place {
                Place::Request => schema["additionalProperties"] = false.into(),
                Place::Response => schema["required"] = always_present(message).into(),
            }
            schema["properties"] = properties.into();
            self.schemas.insert(name.clone(), schema);
        }
        reference(&name)
    }

    fn add_property(
        &mut self,
        properties: &mut Map<String, Value>,
        field: &FieldDescriptor,
        place: Place,
    ) {
        match form_of(field) {
            FieldForm::Omitted | FieldForm::Flattened => return,
            FieldForm::NumberAsString | FieldForm::Binary | FieldForm::Plain => {}
        }
        let description = comment(&field.parent_message().parent_file(), field.path());
        let mut property = self.value(field, place);
        property["description"] = description.into();
        if !matches!(field.kind(), Kind::Bytes) || field.is_list() {
            properties.insert(field.name().to_owned(), property);
            return;
        }
        let in_base64 = format!("{}{BASE64_SUFFIX}", field.name());
        let text = match form_of(field) {
            FieldForm::Binary => property["description"].clone(),
            _ => {
                properties.insert(field.name().to_owned(), property);
                format!("`{}` in base64, if it is not JSON.", field.name()).into()
            }
        };
        let schema =
            json!({"type": ["string", "null"], "contentEncoding": "base64", "description": text});
        properties.insert(in_base64, schema);
    }

    /// The schema of a field's value.
    fn value(&mut self, field: &FieldDescriptor, place: Place) -> Value {
        let kind = field.kind();
        if let (true, Kind::Message(entry)) = (field.is_map(), &kind) {
            let value = entry.map_entry_value_field();
            let values = self.single(&value, &value.kind(), place);
            return json!({"type": ["object", "null"], "additionalProperties": values});
        }
        let single = self.single(field, &kind, place);
        match field.cardinality() {
            Cardinality::Repeated => json!({"type": ["array", "null"], "items": single}),
            Cardinality::Optional | Cardinality::Required => or_null(single),
        }
    }

    fn single(&mut self, field: &FieldDescriptor, kind: &Kind, place: Place) -> Value {
        match kind {
            Kind::Message(message) => self.message(message, place),
            Kind::Enum(values) => json!({"type": "string", "enum": words(values)}),
            Kind::Bool => json!({"type": "boolean"}),
            Kind::String => json!({"type": "string"}),
            // Any JSON.
            Kind::Bytes => json!({}),
            Kind::Double | Kind::Float => json!({"type": "number"}),
            _ if form_of(field) == FieldForm::NumberAsString => {
                json!({"type": ["string", "integer"], "pattern": "^[0-9]{1,20}$"})
            }
            Kind::Uint32 => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
            Kind::Uint64 => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
            Kind::Int32 => json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
            _ => json!({"type": "integer"}),
        }
    }

    fn schemas(mut self) -> Value {
        let codes: Vec<&str> = ErrorCode::all().iter().map(|code| code.name).collect();
        let text = json!({"type": ["string", "null"]});
        let problem = json!({
            "type": "object",
            "description": "Why a request was refused (RFC 9457).",
            "required": ["type", "title", "status", "detail", "code", "errors", "error"],
            "properties": {
                "type": {"type": "string", "description": "A URN with the code."},
                "title": {"type": ["string", "null"], "description": "What the code means."},
                "status": {"type": "integer", "description": "The HTTP status."},
                "detail": {"type": "string", "description": "What was expected, and what was found, in one sentence."},
                "instance": {"type": ["string", "null"], "description": "The id of the request."},
                "code": {"type": "string", "enum": codes, "description": "The error code, which programs should compare."},
                "hint": {"type": ["string", "null"], "description": "What to do next."},
                "errors": {
                    "type": "array",
                    "description": "The invalid fields, or the positions of errors in a definition.",
                    "items": {"type": "object", "required": ["pointer", "detail"], "properties": {
                        "pointer": {"type": "string"}, "detail": {"type": "string"},
                        "line": {"type": "integer"}, "column": {"type": "integer"},
                    }},
                },
                "cluster_ms": {"type": ["integer", "null"], "description": "The cluster's time, if the caller's clock may be wrong."},
                "retry_after_ms": {"type": ["integer", "null"], "description": "How long to wait before a retry."},
                "error": {"type": "object", "description": "The error as the command line prints it.", "properties": {
                    "code": {"type": "string"}, "message": {"type": "string"}, "hint": text,
                }},
            },
        });
        self.schemas.insert("Problem".to_owned(), problem);
        self.schemas.into()
    }
}

/// The headers that make a call conditional (H10).
fn conditions(route: &Route) -> Vec<Value> {
    let header = |name: &str, description: &str, pattern: &str| {
        json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": {"type": "string", "pattern": pattern},
        })
    };
    let mut headers = Vec::new();
    if route.is_read() && !route.is_event_stream {
        let text =
            "Entity tags of earlier responses: a response with one of them is not sent again.";
        headers.push(header(
            "If-None-Match",
            text,
            r#"^(\*|"[!#-~]*"(, ?"[!#-~]*"){0,7})$"#,
        ));
    }
    if route.if_match.is_some() {
        let text = "The expected entity tag. If the current one is different, the status is 412.";
        headers.push(header("If-Match", text, r#"^"[0-9]{1,19}"$"#));
    }
    if route.if_none_match.is_some() {
        let text =
            "Makes the change only if the resource does not exist. Otherwise, the status is 412.";
        headers.push(header("If-None-Match", text, r"^\*$"));
    }
    headers
}

fn description(message: &MessageDescriptor) -> String {
    comment(&message.parent_file(), message.path())
}

/// Adds the names of the message and of those in it.
fn add_messages(message: &MessageDescriptor, names: &mut BTreeSet<String>) {
    if !names.insert(message.name().to_owned()) {
        return;
    }
    for field in message.fields() {
        if let Kind::Message(inner) = field.kind() {
            add_messages(&inner, names);
        }
    }
}

/// The members that the message always has in a response. Bytes that may be JSON have one of two.
fn always_present(message: &MessageDescriptor) -> Vec<String> {
    let names = message.fields().filter_map(|field| match form_of(&field) {
        FieldForm::Omitted | FieldForm::Flattened => None,
        FieldForm::Binary => Some(format!("{}{BASE64_SUFFIX}", field.name())),
        _ if field.kind() == Kind::Bytes && !field.is_list() => None,
        FieldForm::NumberAsString | FieldForm::Plain => Some(field.name().to_owned()),
    });
    names.collect()
}

/// What the body must have: each required field, in one of its forms.
fn required(route: &Route) -> Value {
    let forms = route.required.iter().map(|name| {
        let field = route.request.get_field_by_name(name);
        let in_base64 = format!("{name}{BASE64_SUFFIX}");
        match field.is_some_and(|field| matches!(field.kind(), Kind::Bytes)) {
            true => json!({"anyOf": [{"required": [name]}, {"required": [in_base64]}]}),
            false => json!({"required": [name]}),
        }
    });
    // An empty list is not valid.
    let always = json!({"type": "object"});
    std::iter::once(always).chain(forms).collect()
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A schema that also accepts `null`.
fn or_null(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) if members.is_empty() => schema,
        Value::Object(members) if members.contains_key("$ref") => {
            json!({"anyOf": [schema, {"type": "null"}]})
        }
        Value::Object(members) => {
            let types = match members.get("type") {
                Some(Value::String(one)) => json!([one, "null"]),
                Some(Value::Array(several)) => {
                    let several = several.iter().cloned();
                    several.chain([Value::from("null")]).collect()
                }
                _ => return schema,
            };
            members.insert("type".to_owned(), types);
            if let Some(Value::Array(words)) = members.get_mut("enum") {
                words.push(Value::Null);
            }
            schema
        }
        _ => schema,
    }
}

fn words(values: &EnumDescriptor) -> Value {
    enum_words(values).into()
}

/// The id of an operation: the name of the method. A further route of the same method is named by the last variable of its
/// path.
fn operation_id(route: &Route) -> String {
    let name = route.rpc.name();
    match (route.number, route.variables.last()) {
        (0, _) | (_, None) => name.to_owned(),
        // What the path lacks is then in the query or the body.
        (_, Some(variable)) if variable == "namespace" => format!("{name}InNamespace"),
        (_, Some(variable)) => format!("{name}By{}", camel_case(variable)),
    }
}

fn tag(method: &MethodDescriptor) -> String {
    let service = method.parent_service();
    service.name().trim_end_matches("Service").to_owned()
}

fn first_sentence(text: &str) -> &str {
    let end = text
        .find(". ")
        .or_else(|| text.strip_suffix('.').map(str::len));
    end.map_or(text, |end| &text[..end])
}

/// The comment before the element at this descriptor path, in one line.
fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let file = file.file_descriptor_proto();
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    let mut found = locations.filter(|location| location.path == path);
    let comment = found.find_map(|location| location.leading_comments.as_deref());
    let words = comment.unwrap_or_default().split_whitespace();
    without_rules(&words.collect::<Vec<_>>().join(" "))
}

/// The text without the numbers of rules, such as `(W22)`, which only readers of the sources know.
fn without_rules(text: &str) -> String {
    let is_rule = |word: &str| {
        let number = word.trim_start_matches(|character: char| character.is_ascii_uppercase());
        let is_number = number.starts_with(|digit: char| digit.is_ascii_digit());
        word.starts_with("design rule ") || is_number && number.len() < word.len()
    };
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(" (") {
        kept.push_str(before);
        match after.split_once(')') {
            Some((inner, behind)) if inner.split(", ").all(is_rule) => rest = behind,
            _ => {
                kept.push_str(" (");
                rest = after;
            }
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;

    #[test]
    fn every_operation_is_described() {
        let document = openapi();
        let paths = document["paths"].as_object().expect("paths");
        let mut ids = BTreeSet::new();
        for (path, operations) in paths {
            for (method, operation) in operations.as_object().expect("operations") {
                let id = operation["operationId"].as_str().expect("an id");
                assert!(ids.insert(id.to_owned()), "{id}");
                for field in ["summary", "x-flo-permission"] {
                    let text = operation[field].as_str().unwrap_or_default();
                    assert!(!text.is_empty(), "{method} {path}: {field}");
                }
                for parameter in operation["parameters"].as_array().expect("parameters") {
                    let text = parameter["description"].as_str().unwrap_or_default();
                    assert!(!text.is_empty(), "{method} {path}: {}", parameter["name"]);
                }
                let has_body = [Method::POST, Method::PUT]
                    .iter()
                    .any(|with_body| with_body.as_str().eq_ignore_ascii_case(method));
                assert_eq!(
                    operation.get("requestBody").is_some(),
                    has_body,
                    "{method} {path}"
                );
            }
        }
        assert_eq!(ids.len(), Route::all().len());
    }

    #[test]
    fn descriptions_name_no_rules() {
        let text = "Delivers a signal (W19). At most 3 (X17, design rule 14); 0 (none).";
        let expected = "Delivers a signal. At most 3; 0 (none).";
        assert_eq!(without_rules(text), expected);
        assert_eq!(without_rules("no parentheses ("), "no parentheses (");
        let document = openapi().to_string();
        for rule in ["(W", "(A1", "(X1", "(H1", "design rule"] {
            assert!(!document.contains(rule), "{rule}");
        }
    }

    #[test]
    fn a_response_has_all_its_fields_and_a_request_no_unknown_ones() {
        let document = openapi();
        let schemas = &document["components"]["schemas"];
        let run = schemas["Run"]["required"].as_array().expect("a list");
        assert!(run.contains(&"status".into()) && !run.contains(&"input".into()));
        assert!(schemas["Run"]["properties"]["status"].is_object());
        let completion = &schemas["TaskCompletion"];
        assert_eq!(completion["additionalProperties"], false);
        assert_eq!(completion["required"], Value::Null);
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi();
        let text = document.to_string();
        let references = text.split("\"#/components/schemas/").skip(1);
        for reference in references.filter_map(|rest| rest.split('"').next()) {
            assert!(
                document["components"]["schemas"][reference].is_object(),
                "{reference}"
            );
        }
    }
}

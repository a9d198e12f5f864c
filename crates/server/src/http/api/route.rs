//! The routes of the API, from the options of the methods in `proto/` (H2).

use crate::limits::HTTP_BODY_BYTES_MAX;
use axum::http::{Method, StatusCode};
use flotilla_api::json::DESCRIPTORS;
use prost_reflect::{
    DynamicMessage, ExtensionDescriptor, MessageDescriptor, MethodDescriptor, Value,
};
use std::collections::BTreeMap;

/// The option with the HTTP method, path and body of a route.
const HTTP: &str = "google.api.http";
/// The option with everything else about a route.
const ROUTE: &str = "flotilla.rest.route";
/// The HTTP methods, by the fields of [`HTTP`].
const METHODS: [(&str, Method); 4] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
];

/// How a method is called over HTTP.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The HTTP method.
    pub(super) method: Method,
    /// The path, with fields of the request in braces.
    pub(super) path: String,
    /// Those fields, in path order.
    pub(super) variables: Vec<String>,
    /// Whether the other fields are in a body, not in the query.
    pub(super) has_body: bool,
    /// The gRPC method.
    pub(super) rpc: MethodDescriptor,
    /// The number of the route among those of the gRPC method, from 0.
    pub(super) number: usize,
    /// The path of the gRPC method.
    pub(super) call_path: String,
    /// Whether the response is a stream of events.
    pub(super) is_event_stream: bool,
    /// What the call needs of its caller (X16).
    pub(super) permission: String,
    /// The request.
    pub(super) request: MessageDescriptor,
    /// The response.
    pub(super) response: MessageDescriptor,
    /// The status of a response that reports something new.
    success: StatusCode,
    /// The path of what was created, with fields of the request or of the response in braces.
    location: Option<String>,
    /// The media types besides JSON in which the body may be sent, each with the field that then holds it.
    raw_bodies: Vec<(String, String)>,
    /// The longest body. In bytes.
    pub(super) body_bytes_max: usize,
    /// The fields that the body must have.
    pub(super) required: Vec<String>,
    /// The field of the response whose number is the entity tag.
    pub(super) etag: Option<String>,
    /// The field of the request that `If-Match` sets.
    pub(super) if_match: Option<String>,
    /// The field of the request that `If-None-Match: *` sets.
    pub(super) if_none_match: Option<String>,
}

impl Route {
    /// All routes.
    pub(super) fn all() -> Vec<Self> {
        let extension = |name| DESCRIPTORS.get_extension_by_name(name);
        let (Some(http), Some(route)) = (extension(HTTP), extension(ROUTE)) else {
            return Vec::new();
        };
        let methods = DESCRIPTORS
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>());
        methods
            .flat_map(|method| Self::of_method(&method, (&http, &route)))
            .collect()
    }

    /// The routes of a method; none if it lacks the options.
    fn of_method(
        method: &MethodDescriptor,
        (http, route): (&ExtensionDescriptor, &ExtensionDescriptor),
    ) -> Vec<Self> {
        let options = method.options();
        let (http, route) = (options.get_extension(http), options.get_extension(route));
        let (Some(http), Some(route)) = (http.as_message(), route.as_message()) else {
            return Vec::new();
        };
        let additional = list(http, "additional_bindings");
        let rules = std::iter::once(http).chain(additional.iter().filter_map(Value::as_message));
        let routes = rules.enumerate().filter_map(|(number, rule)| {
            let of_rule = Self::of_rule(method, rule, route)?;
            Some(Self { number, ..of_rule })
        });
        routes.collect()
    }

    fn of_rule(
        method: &MethodDescriptor,
        rule: &DynamicMessage,
        route: &DynamicMessage,
    ) -> Option<Self> {
        let (http_method, path) = METHODS.iter().find_map(|(field, http_method)| {
            let path = text(rule, field)?;
            Some((http_method.clone(), path))
        })?;
        let success = route.get_field_by_name("success")?.as_u32()?;
        let raw_bodies = list(route, "raw_bodies");
        let raw_bodies = raw_bodies.iter().filter_map(|raw| {
            let raw = raw.as_message()?;
            Some((text(raw, "media_type")?, text(raw, "field")?))
        });
        let service = method.parent_service();
        Some(Self {
            variables: variables(&path),
            method: http_method,
            path,
            has_body: text(rule, "body").is_some(),
            call_path: format!("/{}/{}", service.full_name(), method.name()),
            permission: text(route, "permission").unwrap_or_default(),
            is_event_stream: method.is_server_streaming(),
            rpc: method.clone(),
            number: 0,
            request: method.input(),
            response: method.output(),
            success: u16::try_from(success)
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok())
                .unwrap_or(StatusCode::OK),
            location: text(route, "location"),
            raw_bodies: raw_bodies.collect(),
            body_bytes_max: body_bytes_max(route),
            etag: text(route, "etag"),
            if_match: text(route, "if_match"),
            if_none_match: text(route, "if_none_match"),
            required: list(route, "required")
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
        })
    }

    /// The path in the syntax of the router. Its variables are numbered, because the router refuses paths that differ only in the
    /// names of variables.
    pub(super) fn pattern(&self) -> String {
        let mut number = 0;
        let segments = self.path.split('/').map(|segment| {
            if !segment.starts_with('{') {
                return segment.to_owned();
            }
            number += 1;
            match segment.ends_with("=**}") {
                true => format!("{{*{number}}}"),
                false => format!("{{{number}}}"),
            }
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The media types of the body.
    pub(super) fn media_types(&self) -> Vec<&str> {
        let raw = self.raw_bodies.iter().map(|(media_type, _)| &**media_type);
        std::iter::once(super::JSON).chain(raw).collect()
    }

    /// The field that holds a body of this media type; `None` for JSON.
    pub(super) fn raw_field(&self, media_type: &str) -> Option<&str> {
        let raw = self.raw_bodies.iter().find(|(raw, _)| raw == media_type);
        raw.map(|(_, field)| &**field)
    }

    /// Whether the call changes nothing.
    pub(super) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// The status of a response that reports something new.
    pub(super) fn success_status(&self) -> StatusCode {
        self.success
    }

    /// The status of this response: 200 if the call created or changed nothing (H5).
    pub(super) fn status(&self, response: &DynamicMessage) -> StatusCode {
        let flag = |name| response.get_field_by_name(name)?.as_bool();
        let is_old = flag("existing") == Some(true)
            || flag("created") == Some(false)
            || flag("changed") == Some(false);
        match is_old {
            true => StatusCode::OK,
            false => self.success,
        }
    }

    /// The fields of the request that the location needs, by name. They are kept instead of the request, which may be large.
    pub(super) fn location_fields(&self, request: &DynamicMessage) -> BTreeMap<String, String> {
        let names = self
            .location
            .iter()
            .flat_map(|location| variables(location));
        let fields = names.filter_map(|name| {
            let value = text(request, &name)?;
            Some((name, value))
        });
        fields.collect()
    }

    /// The path of what the call created. `of_request` has the fields of the request.
    pub(super) fn location(
        &self,
        of_request: &BTreeMap<String, String>,
        response: &DynamicMessage,
    ) -> Option<String> {
        let mut location = self.location.clone()?;
        for name in variables(&location) {
            let value = text(response, &name).or_else(|| of_request.get(&name).cloned())?;
            location = location.replace(&format!("{{{name}}}"), &percent_encoded(&value));
        }
        Some(location)
    }
}

/// The longest body of a route with these options.
fn body_bytes_max(route: &DynamicMessage) -> usize {
    let given = route.get_field_by_name("body_bytes_max");
    let given = given.and_then(|value| value.as_u32()).unwrap_or_default();
    match given {
        0 => HTTP_BODY_BYTES_MAX,
        given => given as usize,
    }
}

/// The text as one segment of a path.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The names of the variables in a path.
fn variables(path: &str) -> Vec<String> {
    let parts = path.split('{').skip(1);
    let names = parts.filter_map(|part| part.split(['}', '=']).next());
    names.map(str::to_owned).collect()
}

fn text(message: &DynamicMessage, field: &str) -> Option<String> {
    let value = message.get_field_by_name(field)?;
    let text = value.as_str()?.to_owned();
    Some(text).filter(|text| !text.is_empty())
}

fn list(message: &DynamicMessage, field: &str) -> Vec<Value> {
    let value = message.get_field_by_name(field);
    let items = value.as_ref().and_then(|value| value.as_list());
    items.unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_api::PERMISSIONS;
    use std::collections::BTreeSet;

    /// Methods without a route, each for a reason.
    const WITHOUT_ROUTE: [&str; 3] = [
        // A stream in both directions: over HTTP, workers poll.
        "/flotilla.v1.WorkerService/Stream",
        // Streams of responses.
        "/flotilla.v1.ClusterService/Backup",
        // Its route is written by hand: its credential is the token of the task.
        "/flotilla.v1.ActionService/ReportTask",
    ];

    #[test]
    fn every_method_has_a_route() {
        let routes = Route::all();
        let with_route: BTreeSet<&str> = routes.iter().map(|route| &*route.call_path).collect();
        let without: BTreeSet<&str> = PERMISSIONS
            .iter()
            .map(|(path, _)| *path)
            .filter(|path| !with_route.contains(path))
            .collect();
        assert_eq!(without, BTreeSet::from(WITHOUT_ROUTE));
    }

    #[test]
    fn routes_are_distinct_and_name_fields_of_their_messages() {
        let mut seen = BTreeSet::new();
        for route in Route::all() {
            let path = &route.path;
            assert!(
                seen.insert((route.method.to_string(), route.pattern())),
                "{path}"
            );
            assert!(path.starts_with("/v1/") && !path.ends_with('/'), "{path}");
            let raw = route.raw_bodies.iter().map(|(_, field)| field);
            let conditions = route.if_match.iter().chain(&route.if_none_match);
            let named = route.variables.iter().chain(raw).chain(&route.required);
            for field in named.chain(conditions) {
                assert!(
                    route.request.get_field_by_name(field).is_some(),
                    "{path}: {field}"
                );
            }
            for field in route
                .location
                .iter()
                .flat_map(|location| variables(location))
            {
                let messages = [&route.request, &route.response];
                let mut fields = messages
                    .iter()
                    .map(|message| message.get_field_by_name(&field));
                assert!(fields.any(|field| field.is_some()), "{path}: {field}");
            }
            let takes_body = [Method::POST, Method::PUT].contains(&route.method);
            assert_eq!(route.has_body, takes_body, "{path}");
            let creates = route.success == StatusCode::CREATED;
            assert!(creates || route.location.is_none(), "{path}");
        }
    }

    #[test]
    fn a_location_names_what_was_created() {
        let routes = Route::all();
        let start = routes
            .iter()
            .find(|route| route.call_path.ends_with("/StartRun"));
        let start = start.expect("it has a route");
        let mut request = DynamicMessage::new(start.request.clone());
        request.set_field_by_name("namespace", Value::String("shop".to_owned()));
        let mut response = DynamicMessage::new(start.response.clone());
        response.set_field_by_name("run_id", Value::String("a/ü".to_owned()));
        assert_eq!(
            start
                .location(&start.location_fields(&request), &response)
                .as_deref(),
            Some("/v1/namespaces/shop/runs/a%2F%C3%BC")
        );
        assert_eq!(start.status(&response), StatusCode::CREATED);
        response.set_field_by_name("existing", Value::Bool(true));
        assert_eq!(start.status(&response), StatusCode::OK);
    }
}

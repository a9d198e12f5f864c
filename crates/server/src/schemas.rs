//! Compiled schemas of definitions (W4, W67).

use crate::errors::Refusal;
use crate::limits::SCHEMAS_CACHED_MAX;
use flotilla_dsl::schema::{InputSchema, SchemaViolation};
use flotilla_engine::DefinitionNumber;
use flotilla_engine::json::Json;
use flotilla_engine::view::SchemaOf;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A schema of a definition; `None` accepts every value.
pub(crate) type Schema = Option<Arc<InputSchema>>;

/// A definition, and which of its schemas.
type Key = (u64, SchemaOf);

/// The schemas that were used last. A definition never changes, so a cached schema stays valid.
pub(crate) struct Schemas {
    compiled: Mutex<LruCache<Key, Schema>>,
}

impl Default for Schemas {
    fn default() -> Self {
        let capacity = const { NonZeroUsize::new(SCHEMAS_CACHED_MAX).expect("it is not zero") };
        Self {
            compiled: Mutex::new(LruCache::new(capacity)),
        }
    }
}

impl Schemas {
    /// A schema of a definition, if it is cached.
    pub(crate) fn find(&self, definition: DefinitionNumber, of: SchemaOf) -> Option<Schema> {
        self.lock().get(&(definition.0, of)).cloned()
    }

    /// A schema of a definition, whose text is available.
    pub(crate) async fn obtain(
        &self,
        definition: DefinitionNumber,
        of: SchemaOf,
        text: Option<&str>,
    ) -> Result<Schema, Refusal> {
        match self.find(definition, of) {
            Some(known) => Ok(known),
            None => self.compile(definition, of, text.map(str::to_owned)).await,
        }
    }

    /// Compiles a schema of a definition on a blocking thread and caches it. Two callers may do so
    /// at the same time, with the same result.
    pub(crate) async fn compile(
        &self,
        definition: DefinitionNumber,
        of: SchemaOf,
        text: Option<String>,
    ) -> Result<Schema, Refusal> {
        let schema = match text {
            Some(text) => Some(Arc::new(compile(text).await?)),
            None => None,
        };
        self.lock().put((definition.0, of), schema.clone());
        Ok(schema)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Key, Schema>> {
        // The cache's own calls do not panic halfway.
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks a value on a blocking thread: schemas and values can be large.
pub(crate) async fn check(
    schema: Arc<InputSchema>,
    value: Json,
) -> Result<Result<(), SchemaViolation>, Refusal> {
    tokio::task::spawn_blocking(move || judge(&schema, &value))
        .await
        .map_err(|error| Refusal::internal(format!("the check of a value failed: {error}")))
}

async fn compile(text: String) -> Result<InputSchema, Refusal> {
    tokio::task::spawn_blocking(move || InputSchema::compile(&text))
        .await
        .map_err(|error| Refusal::internal(format!("the schema's compiler failed: {error}")))?
        .map_err(|error| {
            Refusal::internal(format!(
                "expected the schema of a stored definition to be valid, but {error}"
            ))
        })
}

/// Validates an input. JSON that the library cannot represent, such as half of a surrogate pair,
/// satisfies no schema.
pub(crate) fn judge(schema: &InputSchema, input: &Json) -> Result<(), SchemaViolation> {
    let value = serde_json::from_str(input.as_str()).map_err(|error| SchemaViolation {
        path: String::new(),
        message: error.to_string(),
    })?;
    schema.check(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: DefinitionNumber = DefinitionNumber(1);

    #[tokio::test]
    async fn a_schema_is_compiled_once_and_judges_inputs() {
        let schemas = Schemas::default();
        assert!(schemas.find(NUMBER, SchemaOf::Input).is_none());
        let text = r#"{"type":"object","required":["id"]}"#.to_owned();
        schemas
            .compile(NUMBER, SchemaOf::Input, Some(text))
            .await
            .unwrap();
        let schema = schemas.find(NUMBER, SchemaOf::Input).flatten().unwrap();
        let judged = async |input: &str| {
            let input = Json::from_checked(input.to_owned());
            check(schema.clone(), input).await.unwrap()
        };
        assert_eq!(judged(r#"{"id":1}"#).await, Ok(()));
        let violation = judged("{}").await.unwrap_err().to_string();
        assert!(violation.contains("required"), "{violation}");
        assert!(judged(r#"{"id":"\ud800"}"#).await.is_err());
    }

    #[tokio::test]
    async fn a_definition_without_a_schema_is_remembered_too() {
        let schemas = Schemas::default();
        assert!(
            schemas
                .compile(NUMBER, SchemaOf::Input, None)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            schemas
                .find(NUMBER, SchemaOf::Input)
                .is_some_and(|schema| schema.is_none())
        );
    }

    #[tokio::test]
    async fn a_stored_schema_that_does_not_compile_is_a_bug() {
        let schema = Some("{".to_owned());
        let refusal = Schemas::default()
            .compile(NUMBER, SchemaOf::Input, schema)
            .await
            .unwrap_err();
        assert!(refusal.to_string().contains("(internal)"), "{refusal}");
    }
}

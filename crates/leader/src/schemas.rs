//! Compiled schemas of definitions (W4, W67).

use crate::error::Error;
use crate::limits::SCHEMAS_CACHED_MAX;
use flotilla_dsl::schema::{InputSchema, SchemaViolation};
use flotilla_engine::DefinitionNumber;
use flotilla_engine::json::Json;
use flotilla_engine::view::SchemaOf;
use flotilla_replica::{BlockingPool, JobKind};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A schema of a definition; `None` accepts every value.
pub type Schema = Option<Arc<InputSchema>>;

/// A definition, and which of its schemas.
type Key = (u64, SchemaOf);

/// The schemas that were used last. A definition never changes, so a cached schema stays valid.
pub struct Schemas {
    compiled: Mutex<LruCache<Key, Schema>>,
    blocking_pool: BlockingPool,
}

impl Schemas {
    /// An empty cache. Schemas and values can be large, so the pool compiles and checks them.
    #[must_use]
    pub fn new(blocking_pool: BlockingPool) -> Self {
        let capacity = const { NonZeroUsize::new(SCHEMAS_CACHED_MAX).expect("it is not zero") };
        Self {
            compiled: Mutex::new(LruCache::new(capacity)),
            blocking_pool,
        }
    }

    /// A schema of a definition, if it is cached.
    #[must_use]
    pub fn find(&self, definition: DefinitionNumber, of: SchemaOf) -> Option<Schema> {
        self.lock().get(&(definition.0, of)).cloned()
    }

    /// A schema of a definition, whose text is available.
    ///
    /// # Errors
    /// [`Error::SchemaInvalid`] if it does not compile, [`Error::Job`] if the compiler panicked.
    pub async fn obtain(
        &self,
        definition: DefinitionNumber,
        of: SchemaOf,
        text: Option<&str>,
    ) -> Result<Schema, Error> {
        match self.find(definition, of) {
            Some(known) => Ok(known),
            None => self.compile(definition, of, text.map(str::to_owned)).await,
        }
    }

    /// Compiles a schema of a definition and caches it. Two callers may do so at the same time, with the same result.
    ///
    /// # Errors
    /// [`Error::SchemaInvalid`] if it does not compile, [`Error::Job`] if the compiler panicked.
    pub async fn compile(
        &self,
        definition: DefinitionNumber,
        of: SchemaOf,
        text: Option<String>,
    ) -> Result<Schema, Error> {
        let schema = match text {
            Some(text) => Some(Arc::new(self.compile_text(text).await?)),
            None => None,
        };
        self.lock().put((definition.0, of), schema.clone());
        Ok(schema)
    }

    async fn compile_text(&self, text: String) -> Result<InputSchema, Error> {
        let compile = move || InputSchema::compile(&text);
        Ok(self.blocking_pool.run(JobKind::Query, compile).await??)
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`Error::Job`] if the library panicked.
    pub async fn check(
        &self,
        schema: Arc<InputSchema>,
        value: Json,
    ) -> Result<Result<(), SchemaViolation>, Error> {
        let check = move || judge(&schema, &value);
        Ok(self.blocking_pool.run(JobKind::Query, check).await?)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Key, Schema>> {
        // The cache's own calls do not panic halfway.
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    use flotilla_replica::Execution;

    const NUMBER: DefinitionNumber = DefinitionNumber(1);

    fn schemas() -> Schemas {
        Schemas::new(Execution::OwnThreads.into())
    }

    #[tokio::test]
    async fn a_schema_is_compiled_once_and_judges_inputs() {
        let schemas = schemas();
        assert!(schemas.find(NUMBER, SchemaOf::Input).is_none());
        let text = r#"{"type":"object","required":["id"]}"#.to_owned();
        schemas
            .compile(NUMBER, SchemaOf::Input, Some(text))
            .await
            .unwrap();
        let schema = schemas.find(NUMBER, SchemaOf::Input).flatten().unwrap();
        let judged = async |input: &str| {
            let input = Json::from_checked(input.to_owned());
            schemas.check(schema.clone(), input).await.unwrap()
        };
        assert_eq!(judged(r#"{"id":1}"#).await, Ok(()));
        let violation = judged("{}").await.unwrap_err().to_string();
        assert!(violation.contains("required"), "{violation}");
        assert!(judged(r#"{"id":"\ud800"}"#).await.is_err());
    }

    #[tokio::test]
    async fn a_definition_without_a_schema_is_remembered_too() {
        let schemas = schemas();
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
        let compiled = schemas().compile(NUMBER, SchemaOf::Input, schema).await;
        assert!(
            matches!(compiled, Err(Error::SchemaInvalid(_))),
            "{compiled:?}"
        );
    }
}

//! Fetches the keys of an issuer (X13).
//!
//! A fetch is a single request over a new connection: no redirects, no proxy, no cookies, and an answer of bounded size. The
//! address that a name resolves to is judged before the connection is made to it (H36).

use super::address::Permitted;
use super::key_url::{KeyUrl, KeyUrlInvalid};
use crate::config::{KeySource, OidcIssuer};
use crate::limits::{OIDC_FETCH_TIMEOUT, OIDC_HEADERS_BYTES_MAX};
use axum::http::{Request, StatusCode, header};
use bytes::Bytes;
use flotilla_oidc::{KEY_SET_BYTES_MAX, KeySet, KeySetInvalid};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;

/// Fetches the keys of one issuer.
pub(super) struct KeyFetcher {
    issuer: String,
    source: KeySource,
    permitted: Permitted,
    tls: TlsConnector,
}

/// Keys as they were fetched.
pub(super) struct FetchedKeys {
    pub(super) keys: KeySet,
    /// The text of the key set.
    pub(super) text: Bytes,
}

/// Why keys cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFetchError {
    /// The file cannot be read.
    #[error("expected to read keys from {}, but that failed: {error}", .file.display())]
    File { file: PathBuf, error: io::Error },
    /// The host has no address, or one that is not permitted.
    #[error("expected {host} to have a permitted address, but it has {found}")]
    Address { host: String, found: String },
    /// The request failed.
    #[error("expected a response of {url}, but {found}")]
    Request { url: String, found: String },
    /// It took too long.
    #[error("expected the keys within {} s, but they did not arrive", OIDC_FETCH_TIMEOUT.as_secs())]
    Timeout,
    /// The discovery document is something else.
    #[error("expected the discovery document of {issuer}, but {found}")]
    Discovery { issuer: String, found: String },
    /// The response is not a key set.
    #[error(transparent)]
    KeySet(#[from] KeySetInvalid),
}

/// What a node needs of a discovery document.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl KeyFetcher {
    /// Fetches the keys of this issuer.
    ///
    /// # Errors
    /// The authorities cannot be read from their file.
    pub(super) fn new(config: &OidcIssuer, source: KeySource) -> Result<Self, KeyFetchError> {
        let is_loopback = match &source {
            KeySource::File(_) => false,
            KeySource::Url(url) | KeySource::Discovery(url) => url.is_loopback(),
        };
        Ok(Self {
            issuer: config.issuer.clone(),
            permitted: Permitted {
                private: config.private_addresses,
                loopback: is_loopback,
            },
            tls: connector(&source, config.ca_file.as_deref())?,
            source,
        })
    }

    /// Whether the keys are in a file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.source, KeySource::File(_))
    }

    /// Fetches the keys.
    ///
    /// # Errors
    /// [`KeyFetchError`] says what failed.
    pub(super) async fn fetch(&self) -> Result<FetchedKeys, KeyFetchError> {
        let fetched = timeout(OIDC_FETCH_TIMEOUT, self.text()).await;
        let text = fetched.map_err(|_| KeyFetchError::Timeout)??;
        Ok(FetchedKeys {
            keys: KeySet::parse(&text)?,
            text,
        })
    }

    async fn text(&self) -> Result<Bytes, KeyFetchError> {
        match &self.source {
            KeySource::File(file) => read(file).await,
            KeySource::Url(url) => self.get(url).await,
            KeySource::Discovery(url) => {
                let document = self.get(url).await?;
                let keys = self.discovered(url, &document)?;
                self.get(&keys).await
            }
        }
    }

    /// The URL of the keys in the discovery document. Its port is that of the document, or the default one.
    fn discovered(&self, from: &KeyUrl, document: &[u8]) -> Result<KeyUrl, KeyFetchError> {
        let fault = |found: String| KeyFetchError::Discovery {
            issuer: self.issuer.clone(),
            found,
        };
        let document: Discovery = serde_json::from_slice(document)
            .map_err(|error| fault(format!("it is invalid: {error}")))?;
        if document.issuer != self.issuer {
            return Err(fault("it is that of another issuer".to_owned()));
        }
        let invalid =
            |invalid: KeyUrlInvalid| fault(format!("its `jwks_uri` is invalid: {invalid}"));
        let keys = KeyUrl::parse(&document.jwks_uri).map_err(invalid)?;
        if keys.port() != 443 && keys.port() != from.port() {
            return Err(fault(format!("its `jwks_uri` has port {}", keys.port())));
        }
        Ok(keys)
    }

    async fn get(&self, url: &KeyUrl) -> Result<Bytes, KeyFetchError> {
        let failed = |found: String| KeyFetchError::Request {
            url: url.to_string(),
            found,
        };
        let stream = self.connect(url).await?;
        if !url.is_tls() {
            return request(stream, url).await.map_err(failed);
        }
        let name = ServerName::try_from(url.host().to_owned());
        let name = name.map_err(|_| failed("its host has no valid name".to_owned()))?;
        let encrypted = self.tls.connect(name, stream).await;
        let encrypted =
            encrypted.map_err(|error| failed(format!("the TLS handshake failed: {error}")))?;
        request(encrypted, url).await.map_err(failed)
    }

    /// Connects to an address of the URL's host. All of its addresses must be permitted.
    async fn connect(&self, url: &KeyUrl) -> Result<TcpStream, KeyFetchError> {
        let refused = |found: String| KeyFetchError::Address {
            host: url.host().to_owned(),
            found,
        };
        let resolved = lookup_host((url.host(), url.port())).await;
        let resolved = resolved.map_err(|error| refused(format!("none: {error}")))?;
        let addresses: Vec<SocketAddr> = resolved.collect();
        let mut denied = addresses.iter().map(SocketAddr::ip);
        if let Some(denied) = denied.find(|address| !self.permitted.permits(*address)) {
            return Err(refused(denied.to_string()));
        }
        TcpStream::connect(&addresses[..])
            .await
            .map_err(|error| KeyFetchError::Request {
                url: url.to_string(),
                found: format!("the connection failed: {error}"),
            })
    }
}

/// Sends the request and returns the body of the response, or what is wrong.
async fn request(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &KeyUrl,
) -> Result<Bytes, String> {
    let failed = |error: hyper::Error| format!("the request failed: {error}");
    let mut client = http1::Builder::new();
    client.max_buf_size(OIDC_HEADERS_BYTES_MAX);
    let handshake = client.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(failed)?;
    // It moves the bytes, and ends with this request.
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let authority = url
        .uri()
        .authority()
        .map_or("", |authority| authority.as_str());
    let path = url.uri().path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(header::HOST, authority)
        .header(header::ACCEPT, "application/json")
        .header(
            header::USER_AGENT,
            concat!("flotilla/", env!("CARGO_PKG_VERSION")),
        )
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(failed)?;
    match response.status() {
        StatusCode::OK => {}
        status if status.is_redirection() => {
            return Err(format!(
                "it is a redirect with status {status}, which is not followed"
            ));
        }
        status => return Err(format!("its status is {status}")),
    }
    let body = Limited::new(response.into_body(), KEY_SET_BYTES_MAX);
    let body = body.collect().await;
    body.map(|body| body.to_bytes())
        .map_err(|error| format!("its body cannot be read: {error}"))
}

/// Reads a file, up to a byte more than is permitted.
async fn read(file: &Path) -> Result<Bytes, KeyFetchError> {
    let unreadable = |error| KeyFetchError::File {
        file: file.to_owned(),
        error,
    };
    let opened = tokio::fs::File::open(file).await.map_err(unreadable)?;
    let mut text = Vec::new();
    let mut limited = opened.take(KEY_SET_BYTES_MAX as u64 + 1);
    limited.read_to_end(&mut text).await.map_err(unreadable)?;
    Ok(text.into())
}

/// Connects to servers whose certificates these authorities, or those of the system, have signed.
fn connector(source: &KeySource, ca_file: Option<&Path>) -> Result<TlsConnector, KeyFetchError> {
    let mut roots = RootCertStore::empty();
    match (source, ca_file) {
        (KeySource::File(_), _) => {}
        (KeySource::Url(_) | KeySource::Discovery(_), Some(file)) => {
            let unreadable = |error| KeyFetchError::File {
                file: file.to_owned(),
                error,
            };
            let invalid = |_| {
                unreadable(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it has no certificate",
                ))
            };
            let text = std::fs::read(file).map_err(unreadable)?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|_| invalid(()))?;
                roots.add(certificate).map_err(|_| invalid(()))?;
            }
            if roots.is_empty() {
                return Err(invalid(()));
            }
        }
        (KeySource::Url(_) | KeySource::Discovery(_), None) => {
            // A machine without any makes each handshake fail.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring supports TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

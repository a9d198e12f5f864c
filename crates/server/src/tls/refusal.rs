//! Describes why a TLS connection was refused, in terms that tell the operator what to fix. rustls
//! reports what it found in the bytes, and for an expired certificate a text that changes every
//! second.

use super::Port;
use super::certificate::describe;
use std::io;
use std::mem::{Discriminant, discriminant};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Groups refusals that are the same to an operator. The other side chooses what an error carries
/// beside its kind: names, times, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// The message is malformed.
    Message(Discriminant<InvalidMessage>),
    /// The other side's certificate is invalid.
    Certificate(Discriminant<CertificateError>),
    /// The other side sent an alert.
    Alert(Discriminant<AlertDescription>),
    /// Any other error; `None` if it is not from rustls.
    Other(Option<Discriminant<Error>>),
}

impl Kind {
    /// The kind of a handshake's error.
    pub(super) fn of(error: &io::Error) -> Self {
        match cause(error) {
            Some(Error::InvalidMessage(message)) => Self::Message(discriminant(message)),
            Some(Error::InvalidCertificate(fault)) => Self::Certificate(discriminant(fault)),
            Some(Error::AlertReceived(alert)) => Self::Alert(discriminant(alert)),
            other => Self::Other(other.map(discriminant)),
        }
    }
}

/// Why the other side of a connection at or to this port is refused; rustls's own text if there is
/// no better one.
pub(super) fn words(error: &io::Error, port: Port) -> String {
    let known = match cause(error) {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => plain(port),
        Some(Error::NoCertificatesPresented) => "it presents no certificate",
        Some(Error::InvalidCertificate(fault)) => return fault_words(fault, error),
        _ => return error.to_string(),
    };
    known.to_owned()
}

fn plain(port: Port) -> &'static str {
    match port {
        Port::Clients | Port::Peers | Port::Admin => {
            "it does not use TLS: is its configuration without tls_cert, tls_key and tls_ca?"
        }
        // A caller here needs none of these.
        Port::Http => "it does not use TLS: does its URL begin with https?",
    }
}

fn fault_words(fault: &CertificateError, error: &io::Error) -> String {
    match fault {
        CertificateError::Expired => "its certificate has expired".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            let until = describe(not_after.as_secs());
            format!("its certificate has expired: it was valid until {until}")
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            let from = describe(not_before.as_secs());
            format!("its certificate is not valid yet: it is not valid before {from}")
        }
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an authority that is not in `tls_ca`".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The rustls error, if it is one.
fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio_rustls::rustls::pki_types::UnixTime;

    fn refused(error: Error) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    fn expired(now_seconds: u64) -> io::Error {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        refused(Error::InvalidCertificate(
            CertificateError::ExpiredContext {
                time: time(now_seconds),
                not_after: time(1_580_515_200),
            },
        ))
    }

    #[test]
    fn the_words_say_what_to_mend_and_else_what_rustls_says() {
        let plain = refused(Error::InvalidMessage(InvalidMessage::InvalidContentType));
        let hint = "it does not use TLS: is its configuration without tls_cert, tls_key and \
                    tls_ca?";
        assert_eq!(words(&plain, Port::Peers), hint);
        assert_eq!(words(&plain, Port::Clients), hint);
        assert!(words(&plain, Port::Http).contains("https"));
        let none = refused(Error::NoCertificatesPresented);
        assert_eq!(words(&none, Port::Peers), "it presents no certificate");
        let foreign = refused(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        assert!(words(&foreign, Port::Peers).contains("an authority that is not in `tls_ca`"));
        let other = refused(Error::DecryptError);
        assert_eq!(
            words(&other, Port::Peers),
            Error::DecryptError.to_string(),
            "rustls' own text"
        );
        let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(words(&gone, Port::Peers), gone.to_string());
    }

    #[test]
    fn an_expired_certificate_is_described_in_the_same_words_at_any_time() {
        let (sooner, later) = (expired(1_600_000_000), expired(1_600_000_001));
        let told = words(&sooner, Port::Peers);
        assert_eq!(
            told,
            "its certificate has expired: it was valid until 2020-02-01 00:00:00 UTC"
        );
        assert_eq!(told, words(&later, Port::Peers));
        assert_eq!(Kind::of(&sooner), Kind::of(&later));
    }

    #[test]
    fn kinds_distinguish_what_needs_a_different_fix() {
        let foreign = refused(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        let plain = refused(Error::InvalidMessage(InvalidMessage::InvalidContentType));
        let none = refused(Error::NoCertificatesPresented);
        let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
        let kinds = [foreign, plain, none, gone, expired(1_600_000_000)].map(|it| Kind::of(&it));
        for (index, kind) in kinds.iter().enumerate() {
            assert!(!kinds[..index].contains(kind), "{kind:?}");
        }
    }
}

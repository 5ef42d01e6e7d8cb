//! Connections over real sockets: TLS, renewed certificates, and slow clients.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use hypervisor::server::{Server, ServerConfig, ServerError, Timeouts, Tls, TlsError, clock};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

struct Running {
    port: u16,
    /// Resolves when the server stops sending the endless response.
    given_up: oneshot::Receiver<()>,
    folder: TempDir,
    _stop: oneshot::Sender<()>,
}

fn certificate(folder: &Path) -> Tls {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    std::fs::write(&tls.certificate, cert.pem()).unwrap();
    std::fs::write(&tls.key, signing_key.serialize_pem()).unwrap();
    tls
}

async fn run(configure: impl FnOnce(&mut ServerConfig)) -> Running {
    let (gone, given_up) = oneshot::channel();
    let gone = Arc::new(Mutex::new(Some(gone)));
    let endless = move || async move { Body::new(Endless(gone.lock().unwrap().take())) };
    let folder = tempfile::tempdir().unwrap();
    let mut config = ServerConfig::local(0, folder.path().to_owned());
    configure(&mut config);
    let server = Server::bind(&config, clock()).await.unwrap();
    let port = server.state().site.port();
    let router = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/length", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/endless", get(endless));
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(server.serve(router, async {
        let _ = stopped.await;
    }));
    Running { port, given_up, folder, _stop }
}

/// An endless body that reports when it is dropped.
struct Endless(Option<oneshot::Sender<()>>);

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(&[b'x'; 1024])))))
    }
}

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await.unwrap()
}

/// Connects over TLS to a server with this certificate.
async fn connect_tls(port: u16, known: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(known).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, connect(port).await).await
}

/// Sends a request and reads until the server closes the connection.
async fn response_to(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

const GET: &str = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn it_serves_over_tls_and_uses_a_renewed_certificate_without_a_restart() {
    let keys = tempfile::tempdir().unwrap();
    let tls = certificate(keys.path());
    let running = run(|config| config.tls = Some(tls.clone())).await;
    let mut stream = connect_tls(running.port, &tls.certificate).await.unwrap();
    assert!(response_to(&mut stream, GET).await.ends_with("here"));
    assert_eq!(
        response_to(&mut connect(running.port).await, GET).await.find("here"),
        None,
        "nothing without TLS"
    );

    let old = keys.path().join("old.pem");
    std::fs::copy(&tls.certificate, &old).unwrap();
    certificate(keys.path());
    // On a file system with coarse timestamps the renewed file could look unchanged.
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    std::fs::File::options().append(true).open(&tls.certificate).unwrap().set_modified(later).unwrap();
    assert!(connect_tls(running.port, &old).await.is_err(), "the old certificate is no longer served");
    let mut stream = connect_tls(running.port, &tls.certificate).await.unwrap();
    assert!(response_to(&mut stream, GET).await.ends_with("here"));

    std::fs::write(&tls.key, "nonsense").unwrap();
    let mut stream = connect_tls(running.port, &tls.certificate).await.unwrap();
    assert!(
        response_to(&mut stream, GET).await.ends_with("here"),
        "the server keeps the last good certificate"
    );
}

#[tokio::test]
async fn an_unusable_certificate_is_reported_with_its_path_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let good = certificate(folder.path());
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let other = write("other.pem", &KeyPair::generate().unwrap().serialize_pem());
    let empty = write("empty.pem", "");
    let torn = write("torn.pem", "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n");
    let missing = folder.path().join("missing.pem");
    let with =
        |certificate: &PathBuf, key: &PathBuf| Tls { certificate: certificate.clone(), key: key.clone() };
    for (tls, expected) in [
        (with(&missing, &good.key), "check the path"),
        (with(&good.certificate, &missing), "check the path"),
        (with(&empty, &good.key), "BEGIN CERTIFICATE"),
        (with(&good.certificate, &empty), "BEGIN PRIVATE KEY"),
        (with(&good.certificate, &good.certificate), "BEGIN PRIVATE KEY"),
        (with(&torn, &good.key), "not PEM"),
        (with(&good.certificate, &other), "does not belong"),
    ] {
        let mut config = ServerConfig::local(0, folder.path().to_owned());
        config.tls = Some(tls);
        let error = Server::bind(&config, clock()).await.unwrap_err();
        assert!(matches!(error, ServerError::Tls(_)), "{error:?}");
        assert!(error.to_string().contains(expected) && error.to_string().contains(".pem"), "{error}");
    }
    let mismatch = with(&good.certificate, &other);
    let config = ServerConfig { tls: Some(mismatch), ..ServerConfig::local(0, folder.path().to_owned()) };
    let error = Server::bind(&config, clock()).await.unwrap_err();
    assert!(matches!(error, ServerError::Tls(TlsError::Mismatch { .. })), "{error:?}");
}

#[tokio::test]
async fn a_client_that_stalls_is_disconnected_at_every_stage() {
    let soon = Duration::from_millis(200);
    let keys = tempfile::tempdir().unwrap();
    let tls = certificate(keys.path());
    let timeouts = Timeouts { head: soon, body: soon, response: soon };
    let plain = run(|config| config.timeouts = timeouts).await;
    let secure = run(|config| (config.timeouts, config.tls) = (timeouts, Some(tls))).await;
    // Each of these would hang forever without a timeout.
    assert_eq!(response_to(&mut connect(plain.port).await, "").await, "", "sends nothing");
    assert_eq!(response_to(&mut connect(plain.port).await, "GET / HTTP/1.1\r\nho").await, "", "half a head");
    assert_eq!(response_to(&mut connect(secure.port).await, "").await, "", "no handshake");
    let idle = response_to(&mut connect(plain.port).await, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(idle.ends_with("here"), "one request, then idle: {idle}");
    let half = "POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf";
    let refused = response_to(&mut connect(plain.port).await, half).await;
    assert!(refused.starts_with("HTTP/1.1 4"), "half a body: {refused}");
    let mut lazy = connect(plain.port).await;
    lazy.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    plain.given_up.await.unwrap();
    drop((plain.folder, secure.folder));
}

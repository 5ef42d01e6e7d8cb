//! Downloads from a test server, and everything that can go wrong.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;

#[derive(Clone)]
struct Publisher {
    file: Arc<Vec<u8>>,
    knows_ranges: bool,
    /// The first byte of each requested range.
    asked: Arc<Mutex<Vec<usize>>>,
}

async fn answer(State(publisher): State<Publisher>, headers: HeaderMap) -> Response {
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let from = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let from: usize = from.filter(|_| publisher.knows_ranges).unwrap_or(0);
    publisher.asked.lock().unwrap().push(from);
    let rest = publisher.file[from..].to_vec();
    if from == 0 {
        return rest.into_response();
    }
    let total = publisher.file.len();
    let range = format!("bytes {from}-{}/{total}", total - 1);
    (StatusCode::PARTIAL_CONTENT, [(header::CONTENT_RANGE, range)], rest).into_response()
}

impl Publisher {
    fn new(file: &[u8]) -> Self {
        Self { file: Arc::new(file.to_vec()), knows_ranges: true, asked: Arc::default() }
    }

    /// Starts the server and returns its URL.
    async fn start(&self) -> WeightsSource {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/weights", get(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        WeightsSource::Url(format!("http://{address}/weights"))
    }
}

fn file() -> Vec<u8> {
    (0..300_000u32).map(|i| (i % 251) as u8).collect()
}

fn manifest(file: &[u8], sources: Vec<WeightsSource>) -> WeightsManifest {
    WeightsManifest {
        name: "Small".into(),
        file: "small.gguf".into(),
        bytes: file.len() as u64,
        sha256: Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect(),
        license: "MIT".into(),
        sources,
    }
}

fn offer(store: &WeightsStore, manifest: &WeightsManifest) -> DownloadOffer {
    match store.availability(manifest) {
        WeightsAvailability::Offered(offer) | WeightsAvailability::Declined(offer) => offer,
        WeightsAvailability::Here(path) => panic!("{path:?} is here"),
    }
}

async fn fetch(folder: &TempDir, manifest: &WeightsManifest) -> Result<PathBuf, FetchError> {
    let store = WeightsStore::new(folder.path());
    let consent = DownloadConsent::to(&offer(&store, manifest));
    store.fetch(manifest, &consent, |_| {}).await
}

fn begun(folder: &TempDir, bytes: &[u8]) {
    std::fs::write(folder.path().join("small.gguf.part"), bytes).unwrap();
}

#[tokio::test]
async fn a_download_reports_progress_and_is_found_afterwards() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let manifest = manifest(&file, vec![Publisher::new(&file).start().await]);
    let store = WeightsStore::new(folder.path());
    let offer = offer(&store, &manifest);
    assert!(offer.to_string().starts_with("Small (MIT): 0.00 GB from http://127.0.0.1"), "{offer}");
    let seen: Arc<Mutex<Vec<DownloadProgress>>> = Arc::default();
    let recorded = seen.clone();
    let on_progress = move |progress| recorded.lock().unwrap().push(progress);
    let path = store.fetch(&manifest, &DownloadConsent::to(&offer), on_progress).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), file);
    assert_eq!(store.availability(&manifest), WeightsAvailability::Here(path));
    assert!(!folder.path().join("small.gguf.part").exists());
    let total = file.len() as u64;
    let seen = seen.lock().unwrap();
    assert!(seen.contains(&DownloadProgress::Downloading { done: total, total }));
    assert_eq!(seen.last(), Some(&DownloadProgress::Verifying { done: total, total }));
}

#[tokio::test]
async fn an_interrupted_download_resumes() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let publisher = Publisher::new(&file);
    let manifest = manifest(&file, vec![publisher.start().await]);
    begun(&folder, &file[..100_000]);
    assert_eq!(offer(&WeightsStore::new(folder.path()), &manifest).done, 100_000);
    fetch(&folder, &manifest).await.unwrap();
    assert_eq!(*publisher.asked.lock().unwrap(), [100_000]);
}

#[tokio::test]
async fn without_range_support_the_download_restarts() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let publisher = Publisher { knows_ranges: false, ..Publisher::new(&file) };
    let manifest = manifest(&file, vec![publisher.start().await]);
    begun(&folder, &file[..100_000]);
    assert_eq!(std::fs::read(fetch(&folder, &manifest).await.unwrap()).unwrap(), file);
}

#[tokio::test]
async fn a_file_with_the_wrong_hash_is_deleted() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let manifest = manifest(&file, vec![Publisher::new(&file).start().await]);
    begun(&folder, &[7; 1000]);
    let error = fetch(&folder, &manifest).await.unwrap_err();
    assert!(matches!(error, FetchError::WrongHash { .. }), "{error}");
    assert_eq!(offer(&WeightsStore::new(folder.path()), &manifest).done, 0);
    fetch(&folder, &manifest).await.unwrap();
}

#[tokio::test]
async fn a_server_that_sends_too_many_bytes_is_rejected() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let longer = [file.as_slice(), b"more"].concat();
    let manifest = manifest(&file, vec![Publisher::new(&longer).start().await]);
    let error = fetch(&folder, &manifest).await.unwrap_err();
    assert!(error.to_string().contains("more than the expected 300000 bytes"), "{error}");
}

#[tokio::test]
async fn an_unreachable_source_falls_back_to_the_next() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let nowhere = WeightsSource::Url("http://127.0.0.1:1/weights".into());
    let both = manifest(&file, vec![nowhere.clone(), Publisher::new(&file).start().await]);
    fetch(&folder, &both).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = fetch(&folder, &manifest(&file, vec![nowhere])).await.unwrap_err();
    let FetchError::Unreachable(reasons) = &error else { panic!("{error}") };
    assert!(reasons[0].starts_with("http://127.0.0.1:1/weights: network error"), "{error}");
}

#[tokio::test]
async fn without_disk_space_no_download_starts() {
    let folder = tempfile::tempdir().unwrap();
    let publisher = Publisher::new(b"");
    let huge = WeightsManifest { bytes: u64::MAX / 4, ..manifest(b"", vec![publisher.start().await]) };
    let error = fetch(&folder, &huge).await.unwrap_err();
    assert!(matches!(error, FetchError::NoSpace { .. }), "{error}");
    assert!(publisher.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn consent_to_another_file_is_not_accepted() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let publisher = Publisher::new(&file);
    let wanted = manifest(&file, vec![publisher.start().await]);
    let store = WeightsStore::new(folder.path());
    let consent = DownloadConsent::to(&offer(&store, &manifest(b"other", Vec::new())));
    assert!(matches!(store.fetch(&wanted, &consent, |_| {}).await, Err(FetchError::NoConsent)));
    assert!(publisher.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn concurrent_downloads_of_the_same_file_are_refused() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let manifest = manifest(&file, vec![Publisher::new(&file).start().await]);
    let path = WeightsStore::new(folder.path()).path(&manifest);
    let _other = PartialFile::open(folder.path(), &path, manifest.bytes).unwrap();
    assert!(matches!(fetch(&folder, &manifest).await, Err(FetchError::Busy)));
}

#[tokio::test]
async fn a_declined_download_is_not_offered_until_consent_is_given() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let nowhere = manifest(&file, vec![WeightsSource::Url("http://127.0.0.1:1/weights".into())]);
    let store = WeightsStore::new(folder.path().join("not/there/yet"));
    let offered = store.availability(&nowhere);
    let WeightsAvailability::Offered(offer) = &offered else { panic!("{offered:?}") };
    store.decline(&nowhere).unwrap();
    let again = WeightsStore::new(folder.path().join("not/there/yet"));
    assert_eq!(
        again.availability(&nowhere),
        WeightsAvailability::Declined(offer.clone()),
        "other stores see the mark"
    );
    store.fetch(&nowhere, &DownloadConsent::to(offer), |_| {}).await.unwrap_err();
    assert_eq!(again.availability(&nowhere), offered, "consent removes the mark, even if the download fails");
    store.decline(&nowhere).unwrap();
    let reached = manifest(&file, vec![Publisher::new(&file).start().await]);
    let path = store.fetch(&reached, &DownloadConsent::to(offer), |_| {}).await.unwrap();
    store.decline(&reached).unwrap();
    assert_eq!(
        store.availability(&reached),
        WeightsAvailability::Here(path),
        "downloaded weights are not declined"
    );
}

//! The local model: weights that are downloaded after the person agreed, a process that is started on demand, and a
//! speed that is measured once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_host::agent_services::LocalModelHost;
use computer::error::{ComputerError, ErrorCode, from_anyhow};
use futures_util::future::BoxFuture;
use local_model::speed::{MeasuredSpeed, measure_speed};
use local_model::weights::{
    DownloadConsent, DownloadOffer, DownloadProgress, FetchError, WeightsAvailability, WeightsManifest,
    WeightsStore,
};
use local_model::{LocalModelRunner, RunnerOptions, RunnerStatus, StopCause};
use models::{ApiKey, Catalog, ErrorClass, LocalModel, LocalModelEndpoint, LocalModelStatus, ModelError};
use shared_types::wire::LocalModelLine;
use tokio::sync::OnceCell;

/// The local model of this machine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MachineModel {
    manifest: WeightsManifest,
    store: WeightsStore,
    runner: LocalModelRunner,
    fetching: Arc<Mutex<DownloadState>>,
    /// The speed that this process measured, if it tried.
    measured: Arc<OnceCell<Option<MeasuredSpeed>>>,
}

/// The state of the download.
#[derive(Debug, Default)]
enum DownloadState {
    #[default]
    Idle,
    Running {
        done: u64,
        task: Option<tokio::task::AbortHandle>,
    },
    Failed(String),
}

impl MachineModel {
    /// Weights are stored below the data folder, for all users of the machine. Their context size comes from the
    /// catalog.
    pub(crate) fn new(data: &Path, catalog: &Catalog) -> Self {
        let manifest = WeightsManifest::qwen_coder();
        let store = WeightsStore::new(folder(data));
        let runner = LocalModelRunner::new(options(&store, &manifest, catalog));
        Self::of(manifest, store, runner)
    }

    fn of(manifest: WeightsManifest, store: WeightsStore, runner: LocalModelRunner) -> Self {
        Self { manifest, store, runner, fetching: Arc::default(), measured: Arc::default() }
    }

    fn fetching(&self) -> MutexGuard<'_, DownloadState> {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn speed(&self) -> Option<MeasuredSpeed> {
        let known = MeasuredSpeed::known(&self.store.path(&self.manifest));
        known.or_else(|| self.measured.get().cloned().flatten())
    }

    /// What would be downloaded. `None` if all weights are present.
    pub(crate) fn offer(&self) -> Option<DownloadOffer> {
        match self.store.availability(&self.manifest) {
            WeightsAvailability::Here(_) => None,
            WeightsAvailability::Offered(offer) | WeightsAvailability::Declined(offer) => Some(offer),
        }
    }

    /// Whether the download can still be offered, because the person did not decline it.
    pub(crate) fn is_offered(&self) -> bool {
        matches!(self.status(), LocalModelStatus::Absent { .. })
    }

    /// Downloads the weights that the person agreed to, and then measures the model. The caller waits for it.
    pub(crate) async fn bring(
        &self,
        consent: &DownloadConsent,
        progress: impl Fn(DownloadProgress) + Send + Sync + 'static,
    ) -> Result<(), FetchError> {
        self.store.fetch(&self.manifest, consent, progress).await?;
        self.measure_speed().await;
        Ok(())
    }

    /// Stops a download. Returns whether one was running. What was downloaded so far is kept.
    fn end_fetching(&self) -> bool {
        let DownloadState::Running { task, .. } = std::mem::take(&mut *self.fetching()) else { return false };
        if let Some(task) = task {
            task.abort();
        }
        true
    }

    /// The state of the model's process. `None` unless all weights are present.
    fn standing(&self) -> LocalModelStatus {
        let status = self.runner.status().borrow().clone();
        match status {
            RunnerStatus::Stopped(
                StopCause::NotStarted | StopCause::Idle | StopCause::Requested | StopCause::Crashed(_),
            ) => LocalModelStatus::Idle,
            RunnerStatus::Starting { .. } | RunnerStatus::Ready { .. } => {
                let tokens_per_second = self.speed().map(|measured| measured.speed.decode as f32);
                LocalModelStatus::Running { tokens_per_second }
            }
        }
    }

    /// Measures the speed, unless this machine already did or this process already tried. A failure is ignored.
    async fn measure_speed(&self) {
        if self.speed().is_some() {
            return;
        }
        let measuring = async || {
            let came = measure_speed(&self.runner).await;
            came.inspect_err(|error| tracing::warn!(%error, "the speed of the local model is not known")).ok()
        };
        self.measured.get_or_init(measuring).await;
    }
}

/// The folder of the weights: `CHOIR_WEIGHTS`, or a folder below the data folder.
fn folder(data: &Path) -> PathBuf {
    std::env::var_os("CHOIR_WEIGHTS").map_or_else(|| data.join("models"), PathBuf::from)
}

/// The command that starts the model's process.
fn options(store: &WeightsStore, manifest: &WeightsManifest, catalog: &Catalog) -> RunnerOptions {
    let context = catalog.local_context().and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or_default();
    RunnerOptions { model: manifest.name.clone(), ..RunnerOptions::new(store.path(manifest), context) }
}

impl LocalModel for MachineModel {
    fn endpoint(&self) -> BoxFuture<'_, Result<LocalModelEndpoint, ModelError>> {
        Box::pin(async move {
            let failed = |message: String| {
                ModelError::new(self.manifest.name.clone(), ErrorClass::Unavailable, message)
            };
            let lease = self.runner.acquire().await.map_err(|e| failed(e.to_string()))?;
            // Weights that were copied by hand have no speed yet, so the first request measures it before its answer.
            self.measure_speed().await;
            let base_url = lease.base_url().parse().map_err(|_| failed("it listens nowhere".into()))?;
            Ok(LocalModelEndpoint { base_url, bearer: Some(ApiKey::new(lease.bearer())) })
        })
    }

    fn status(&self) -> LocalModelStatus {
        let bytes = self.manifest.bytes;
        let absent = match self.store.availability(&self.manifest) {
            WeightsAvailability::Here(_) => return self.standing(),
            WeightsAvailability::Offered(_) => LocalModelStatus::Absent { bytes },
            WeightsAvailability::Declined(_) => LocalModelStatus::Declined,
        };
        match &*self.fetching() {
            DownloadState::Idle => absent,
            DownloadState::Running { done, .. } => LocalModelStatus::Fetching { done: *done, bytes },
            DownloadState::Failed(reason) => LocalModelStatus::Failed { reason: reason.clone() },
        }
    }
}

impl LocalModelHost for MachineModel {
    fn line(&self) -> LocalModelLine {
        let status = self.status();
        let (downloaded, fetching) = match &status {
            LocalModelStatus::Absent { .. }
            | LocalModelStatus::Declined
            | LocalModelStatus::Failed { .. } => (0, false),
            LocalModelStatus::Fetching { done, .. } => (*done, true),
            LocalModelStatus::Idle | LocalModelStatus::Running { .. } => (self.manifest.bytes, false),
        };
        let hundredths = |rate: f64| (rate * 100.0).round().max(0.0) as u64;
        LocalModelLine {
            name: self.manifest.name.clone(),
            bytes: self.manifest.bytes,
            downloaded,
            fetching,
            declined: status == LocalModelStatus::Declined,
            ready: status.obstacle().is_none(),
            problem: status.obstacle(),
            failure: status.failure().map(ToOwned::to_owned),
            speed: self.speed().map(|m| (hundredths(m.speed.prefill), hundredths(m.speed.decode))),
        }
    }

    fn fetch(&self) {
        let mut fetching = self.fetching();
        let Some(offer) = self.offer().filter(|_| !matches!(&*fetching, DownloadState::Running { .. }))
        else {
            return;
        };
        *fetching = DownloadState::Running { done: offer.done, task: None };
        let (own, told) = (self.clone(), Arc::clone(&self.fetching));
        let task = tokio::spawn(async move {
            let progress = move |progress: DownloadProgress| {
                let (DownloadProgress::Downloading { done, .. } | DownloadProgress::Verifying { done, .. }) =
                    progress;
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                if let DownloadState::Running { done: known, .. } = &mut *told {
                    *known = done;
                }
            };
            let came = own.store.fetch(&own.manifest, &DownloadConsent::to(&offer), progress).await;
            let is_here = came.is_ok();
            *own.fetching() = match came {
                Ok(_) => DownloadState::Idle,
                Err(error) => DownloadState::Failed(error.to_string()),
            };
            if is_here {
                own.measure_speed().await;
            }
        });
        if let DownloadState::Running { task: handle, .. } = &mut *fetching {
            *handle = Some(task.abort_handle());
        }
    }

    fn decline(&self) -> Result<(), ComputerError> {
        if self.offer().is_none() {
            let message = "the local model is here already; there is no download to decline";
            return Err(ComputerError::new(ErrorCode::Refused, message));
        }
        self.end_fetching();
        let kept = self.store.decline(&self.manifest);
        kept.map_err(|error| from_anyhow(&error.into()))
    }

    fn stop(&self) {
        if self.end_fetching() {
            return;
        }
        let runner = self.runner.clone();
        tokio::spawn(async move { runner.stop().await });
    }
}

#[cfg(test)]
mod tests;

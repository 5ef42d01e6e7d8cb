//! The model of this machine, put together: weights that are fetched when the person agrees, a process that is started
//! when somebody asks it, and how quick it is, which is measured once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use local_model::speed::{MeasuredSpeed, measure_speed};
use local_model::weights::{
    DownloadConsent, DownloadOffer, DownloadProgress, FetchError, WeightsAvailability, WeightsManifest,
    WeightsStore,
};
use local_model::{LocalModelRunner, RunnerOptions, RunnerStatus, StopCause};
use models::{ApiKey, Catalog, ErrorClass, LocalModel, LocalModelEndpoint, LocalModelStatus, ModelError};
use sandbox::failure::{Code, Failure, of_anyhow};
use sandbox::minds::LocalHost;
use shared_types::wire::LocalModelLine;
use tokio::sync::OnceCell;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Local {
    manifest: WeightsManifest,
    store: WeightsStore,
    runner: LocalModelRunner,
    fetching: Arc<Mutex<Fetching>>,
    /// What came of measuring it in this process, if that was tried.
    measured: Arc<OnceCell<Option<MeasuredSpeed>>>,
}

/// How far the weights are.
#[derive(Debug, Default)]
enum Fetching {
    #[default]
    Not,
    Now {
        done: u64,
        task: Option<tokio::task::AbortHandle>,
    },
    Failed(String),
}

impl Local {
    /// Weights lie below the data folder, for all users of the machine. The process reads what the catalog promises.
    pub(crate) fn new(data: &Path, catalog: &Catalog) -> Self {
        let manifest = WeightsManifest::qwen_coder();
        let store = WeightsStore::new(folder(data));
        let runner = LocalModelRunner::new(options(&store, &manifest, catalog));
        Self::of(manifest, store, runner)
    }

    fn of(manifest: WeightsManifest, store: WeightsStore, runner: LocalModelRunner) -> Self {
        Self { manifest, store, runner, fetching: Arc::default(), measured: Arc::default() }
    }

    fn fetching(&self) -> MutexGuard<'_, Fetching> {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn speed(&self) -> Option<MeasuredSpeed> {
        let known = MeasuredSpeed::known(&self.store.path(&self.manifest));
        known.or_else(|| self.measured.get().cloned().flatten())
    }

    /// What would be downloaded; nothing, if all of it is here.
    pub(crate) fn offer(&self) -> Option<DownloadOffer> {
        match self.store.availability(&self.manifest) {
            WeightsAvailability::Here(_) => None,
            WeightsAvailability::Offered(offer) | WeightsAvailability::Declined(offer) => Some(offer),
        }
    }

    /// Whether the person was not asked yet.
    pub(crate) fn is_offered(&self) -> bool {
        matches!(self.status(), LocalModelStatus::Absent { .. })
    }

    /// Downloads what the person agreed to while somebody waits for it, and measures the model then.
    pub(crate) async fn bring(
        &self,
        consent: &DownloadConsent,
        progress: impl Fn(DownloadProgress) + Send + Sync + 'static,
    ) -> Result<(), FetchError> {
        self.store.fetch(&self.manifest, consent, progress).await?;
        self.measure().await;
        Ok(())
    }

    /// Whether there was anything to end. What came so far stays.
    fn end_fetching(&self) -> bool {
        let Fetching::Now { task, .. } = std::mem::take(&mut *self.fetching()) else { return false };
        if let Some(task) = task {
            task.abort();
        }
        true
    }

    /// How its process is, where all weights are here.
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

    /// Measures it, unless that was done on this machine or tried in this process. Nothing fails by it.
    async fn measure(&self) {
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

/// Where weights lie: with the machine's data, unless `CHOIR_WEIGHTS` names a folder.
fn folder(data: &Path) -> PathBuf {
    std::env::var_os("CHOIR_WEIGHTS").map_or_else(|| data.join("models"), PathBuf::from)
}

/// How its process is started.
fn options(store: &WeightsStore, manifest: &WeightsManifest, catalog: &Catalog) -> RunnerOptions {
    let context = catalog.local_context().and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or_default();
    RunnerOptions { model: manifest.name.clone(), ..RunnerOptions::new(store.path(manifest), context) }
}

impl LocalModel for Local {
    fn endpoint(&self) -> BoxFuture<'_, Result<LocalModelEndpoint, ModelError>> {
        Box::pin(async move {
            let failed = |message: String| {
                ModelError::new(self.manifest.name.clone(), ErrorClass::Unavailable, message)
            };
            let lease = self.runner.acquire().await.map_err(|e| failed(e.to_string()))?;
            // Weights that were brought by hand have no speed yet; the first who asks waits for it, before they are answered.
            self.measure().await;
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
            Fetching::Not => absent,
            Fetching::Now { done, .. } => LocalModelStatus::Fetching { done: *done, bytes },
            Fetching::Failed(reason) => LocalModelStatus::Failed { reason: reason.clone() },
        }
    }
}

impl LocalHost for Local {
    fn line(&self) -> LocalModelLine {
        let status = self.status();
        let (here, fetching) = match &status {
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
            here,
            fetching,
            declined: status == LocalModelStatus::Declined,
            ready: status.obstacle().is_none(),
            obstacle: status.obstacle(),
            speed: self.speed().map(|m| (hundredths(m.speed.prefill), hundredths(m.speed.decode))),
        }
    }

    fn fetch(&self) {
        let mut fetching = self.fetching();
        let Some(offer) = self.offer().filter(|_| !matches!(&*fetching, Fetching::Now { .. })) else {
            return;
        };
        *fetching = Fetching::Now { done: offer.done, task: None };
        let (own, told) = (self.clone(), Arc::clone(&self.fetching));
        let task = tokio::spawn(async move {
            let progress = move |progress: DownloadProgress| {
                let (DownloadProgress::Downloading { done, .. } | DownloadProgress::Verifying { done, .. }) =
                    progress;
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                if let Fetching::Now { done: known, .. } = &mut *told {
                    *known = done;
                }
            };
            let came = own.store.fetch(&own.manifest, &DownloadConsent::to(&offer), progress).await;
            let is_here = came.is_ok();
            *own.fetching() = match came {
                Ok(_) => Fetching::Not,
                Err(error) => Fetching::Failed(error.to_string()),
            };
            if is_here {
                own.measure().await;
            }
        });
        if let Fetching::Now { task: handle, .. } = &mut *fetching {
            *handle = Some(task.abort_handle());
        }
    }

    fn decline(&self) -> Result<(), Failure> {
        if self.offer().is_none() {
            let message = "the local model is here already; there is no download to decline";
            return Err(Failure::new(Code::Refused, message));
        }
        self.end_fetching();
        let kept = self.store.decline(&self.manifest);
        kept.map_err(|error| of_anyhow(&error.into()))
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

//! A machine: the web server, the registry of computers and all routes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{Extensions, HeaderName, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use event_log::EventLog;
use hypervisor::access::{
    Access, BuildRouterError, Credential, ExtensionLoader, Principal, ResponseKind, Route, build_router,
};
use hypervisor::assets::Assets;
use hypervisor::auth;
use hypervisor::identity::{Clock, IdentityError, User};
use hypervisor::pages::{self, Pages};
use hypervisor::server::{Server, ServerConfig, ServerError};
use hypervisor::server_state::ServerState;
use shared_types::UserId;
use shared_types::wire::{Me, TokenScope};
use thiserror::Error;

use crate::api::{self, ShellPermission};
use crate::open_computer::{OpenComputer, not_started};
use crate::registry::Registry;
use crate::supervision::Application;
use agent_host::agent_services::{AgentServices, LocalServices, ServicesConfig};
use computer::error::ComputerError;

/// Why a machine does not start.
#[derive(Debug, Error)]
pub enum MachineError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Assemble(#[from] BuildRouterError),
    #[error(transparent)]
    Computer(#[from] ComputerError),
}

/// The configuration of a machine.
#[derive(Debug, Clone)]
pub struct MachineConfig {
    pub server: ServerConfig,
    /// A computer that is idle for this long is closed until its next use; `None` disables this.
    pub idle_close: Option<Duration>,
    /// `[models]`: what differs from the built-in catalog.
    pub models: Option<toml::Table>,
    /// `[web.search]` and `[telemetry]`.
    pub services: ServicesConfig,
    /// `[mcp]`: MCP servers.
    pub mcp: Option<toml::Table>,
    /// `[rules]`: what agents may do, before the built-in rules.
    pub rules: Option<toml::Table>,
    pub local_services: LocalServices,
}

impl MachineConfig {
    /// The default of `idle_close`.
    pub const IDLE_CLOSE: Duration = Duration::from_secs(15 * 60);

    pub fn new(server: ServerConfig) -> Self {
        Self {
            server,
            idle_close: Some(Self::IDLE_CLOSE),
            models: None,
            services: ServicesConfig::default(),
            mcp: None,
            rules: None,
            local_services: LocalServices::default(),
        }
    }
}

/// A machine that has its port, with the owner's computer open.
#[derive(Debug)]
pub struct Machine {
    server: Server,
    registry: Arc<Registry>,
    idle_close: Option<Duration>,
    router: axum::Router,
    owner: User,
}

impl Machine {
    /// Binds the port, opens the identity store and the owner's computer.
    pub async fn start(
        config: &MachineConfig,
        clock: Clock,
        owner: &UserId,
        name: &str,
        assets: Arc<dyn Assets>,
        version: &'static str,
    ) -> Result<Self, MachineError> {
        let MachineConfig { server, idle_close, models, services, mcp, rules, local_services } = config;
        let data = server.data.clone();
        let server = Server::bind(server, clock).await?;
        let vault = server.state().vault.clone();
        let agent_services =
            AgentServices { local_services: local_services.clone(), ..AgentServices::new(models.as_ref())? };
        let agent_services = agent_services.with_services(services)?.with_mcp(mcp.as_ref())?;
        let agent_services =
            agent_services.with_rules(rules.as_ref())?.with_keys(crate::keys_per_user(&vault));
        let application = Application::start().await.map_err(not_started)?;
        let registry = Arc::new(Registry::new(&data, agent_services, application));
        let owner = server.state().identity.ensure_owner(owner, name)?;
        registry.open_for(&owner.id, &owner.name).await?;
        let pages = Pages { assets, version, ready: Arc::new(|| Ok(())), metrics: metrics(&registry) };
        let me = move |principal: Principal, Extension(shell): Extension<ShellPermission>| async move {
            me(principal, &shell, version)
        };
        let mut routes =
            vec![Route::get("/api/v1/me", Access::SignedIn(TokenScope::Read), "Who is signed in", me)];
        routes.extend(api::routes());
        routes.extend(auth::routes());
        routes.extend(pages::routes(pages));
        describe(&mut routes);
        let router = build_router(routes, Arc::clone(server.state()), attach(server.state(), &registry))?;
        Ok(Self { server, registry, idle_close: *idle_close, router, owner })
    }

    /// The folder of the owner's files.
    pub fn workspace(&self) -> std::path::PathBuf {
        self.registry.paths(&self.owner.id).workspace
    }

    /// The routes with their guards, for calls without a network.
    pub fn router(&self) -> axum::Router {
        self.router.clone()
    }

    /// The port that the server listens on.
    pub fn port(&self) -> u16 {
        self.server.state().site.port()
    }

    /// The owner's computer.
    pub async fn owner_computer(&self) -> Result<OpenComputer, MachineError> {
        Ok(self.registry.open_for(&self.owner.id, &self.owner.name).await?)
    }

    /// A link that signs the owner in. It works once, for five minutes.
    pub fn link(&self) -> Result<String, MachineError> {
        let secret = self.server.state().identity.make_link(&self.owner.id)?;
        Ok(self.server.state().site.sign_in_link(&secret))
    }

    /// Serves until `stop` completes; then closes every computer.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send) -> Result<(), MachineError> {
        let (registry, users) = (Arc::clone(&self.registry), self.server.state().identity.users()?);
        let resuming = tokio::spawn(async move { registry.open_computers_with_runs(&users).await });
        let closing_idle = async {
            match self.idle_close {
                Some(idle) => self.registry.close_idle(idle).await,
                None => std::future::pending().await,
            }
        };
        let served = tokio::select! {
            served = self.server.serve(self.router, stop) => served,
            () = closing_idle => Ok(()),
            () = self.registry.reopen_failed() => Ok(()),
        };
        resuming.abort();
        self.registry.close().await;
        Ok(served?)
    }
}

fn me(principal: Principal, shell: &ShellPermission, version: &str) -> Json<Me> {
    let Principal { user, name, owner, .. } = principal;
    Json(Me { user, name, owner, shell: shell.is_allowed(), version: version.to_owned() })
}

/// Adds the route of the document that describes all routes, including itself.
fn describe(routes: &mut Vec<Route>) {
    const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];
    let document = Arc::new(OnceLock::new());
    let text: Arc<OnceLock<String>> = Arc::clone(&document);
    let handler = move || async move { (JSON, text.get().cloned().unwrap_or_default()).into_response() };
    let route = Route::get("/api/v1/openapi.json", Access::Anyone, "This document", handler);
    routes.push(route.responds_with(ResponseKind::Bytes("application/json")));
    let _ = document.set(format!("{:#}\n", api::openapi::document(routes)));
}

/// Adds the principal's computer to the request, and whether a plain shell is allowed: only for the owner, and only
/// while no other account exists.
fn attach(state: &Arc<ServerState>, registry: &Arc<Registry>) -> ExtensionLoader {
    let (state, registry) = (Arc::clone(state), Arc::clone(registry));
    Arc::new(move |principal| {
        let (state, registry) = (Arc::clone(&state), Arc::clone(&registry));
        Box::pin(async move {
            let mut attached = Extensions::new();
            if !has_one_account(&state) {
                // Also shells that were started before the second account existed.
                registry
                    .open_computers()
                    .iter()
                    .for_each(|open_computer| open_computer.terminals().end_shells());
            }
            let session = matches!(principal.credential, Credential::Session { .. });
            let may = principal.owner && session && state.site.is_local();
            attached.insert(ShellPermission(Arc::new(move || may && has_one_account(&state))));
            let open_computer = registry.open_for(&principal.user, &principal.name).await;
            let open_computer = open_computer.map_err(|failure| api::problem::RouteError::from(failure).0)?;
            attached.insert(open_computer);
            Ok(attached)
        })
    })
}

fn has_one_account(state: &ServerState) -> bool {
    state.identity.users().is_ok_and(|users| users.len() == 1)
}

fn metrics(registry: &Arc<Registry>) -> Arc<dyn Fn(&mut String) + Send + Sync> {
    let registry = Arc::clone(registry);
    Arc::new(move |text| {
        let open_computers = registry.open_computers();
        let gauge = |text: &mut String, name: &str, help: &str, value: u64| {
            hypervisor::metrics::metric(text, name, "gauge", help, value);
        };
        gauge(text, "choir_computers_open", "Computers that are open.", open_computers.len() as u64);
        let events =
            open_computers.iter().map(|open_computer| open_computer.computer().log().head().seq.0).sum();
        gauge(text, "choir_events", "Events in the logs of open computers.", events);
        let lag =
            open_computers.iter().filter_map(|open_computer| open_computer.computer().projector().lag().ok());
        gauge(
            text,
            "choir_projection_lag_events",
            "Events that lists and files have yet to follow.",
            lag.map(|l| l.events()).sum(),
        );
        let terminals =
            open_computers.iter().map(|open_computer| open_computer.terminals().list().len() as u64).sum();
        gauge(text, "choir_terminals", "Terminals that run.", terminals);
    })
}

//! The services that agents on this machine use: models, rules, the web and MCP tools. Keys are per user.

use std::sync::Arc;

use agents::local_model_lock::LocalModelLock;
use agents::roles::Role;
use agents::toolbox::Toolbox;
use agents::web::Web;
use agents::{AgentEnvironment, Rules};
use event_log::EventLog;
use models::{ApiKey, ApiKeys, Catalog, ChosenModel, Gateway, LocalModel, ModelError};
use shared_types::UserId;
use shared_types::wire::{LocalModelLine, ModelLine};

use crate::mcp_cells::{McpServerCells, OnStart};
use crate::mcp_tools::{self, McpTools};
use crate::services::UserServices;
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::web::WebWithSearch;
use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;
use web_access::search::{Search, SearchConfig};

/// Returns the API keys of a user.
pub type UserKeys = Arc<dyn Fn(&UserId) -> Arc<dyn ApiKeys> + Send + Sync>;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct AgentServices {
    /// Has no keys; the gateways of the users share its catalog and connections.
    pub shared_gateway: Gateway,
    pub keys: UserKeys,
    pub local_services: LocalServices,
    /// The search provider, if one is configured.
    pub search: Option<Search>,
    pub telemetry: Option<Telemetry>,
    pub rules: Arc<Rules>,
    /// The MCP servers of `[mcp]`.
    pub mcp_settings: Arc<mcp::Settings>,
    /// Which agent holds the local model, across all users.
    pub local_model_lock: Arc<LocalModelLock>,
}

impl std::fmt::Debug for AgentServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentServices")
    }
}

/// Manages the local model: its weights and its process.
pub trait LocalModelHost: LocalModel {
    fn line(&self) -> LocalModelLine;
    /// Starts the download, to which the person agreed. Does nothing if it is done or in progress.
    fn fetch(&self);
    /// Records that the person declined the download, so that they are not asked again, and stops it.
    fn decline(&self) -> Result<(), ComputerError>;
    /// Stops the download, or the process.
    fn stop(&self);
}

/// Services that the machine itself provides to agents: its local model, and the web.
#[derive(Clone, Default)]
pub struct LocalServices {
    pub local: Option<Arc<dyn LocalModelHost>>,
    pub web: Option<Arc<dyn Web>>,
}

impl std::fmt::Debug for LocalServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LocalServices")
    }
}

/// The configuration of services other than models, from `choir.toml`.
#[derive(Debug, Clone, Default)]
pub struct ServicesConfig {
    pub search: Option<SearchConfig>,
    pub telemetry: Option<TelemetryConfig>,
}

/// No user has a key.
struct NoKeys;

impl ApiKeys for NoKeys {
    fn key(&self, _: &str) -> Option<ApiKey> {
        None
    }
}

impl AgentServices {
    /// The catalog with the changes of `[models]`, the built-in rules, and no keys.
    pub fn new(models: Option<&toml::Table>) -> Result<Self, ComputerError> {
        let wrong =
            |e: &dyn std::fmt::Display| ComputerError::new(ErrorCode::BadRequest, format!("[models]: {e}"));
        let catalog = Catalog::load(models).map_err(|e| wrong(&e))?;
        let rules = Rules::built_in().map_err(|e| wrong(&e))?;
        let keys: UserKeys = Arc::new(|_| Arc::new(NoKeys));
        Ok(Self {
            shared_gateway: Gateway::new(catalog, Arc::new(NoKeys)),
            keys,
            local_services: LocalServices::default(),
            search: None,
            telemetry: None,
            rules: Arc::new(rules),
            mcp_settings: Arc::default(),
            local_model_lock: Arc::default(),
        })
    }

    /// Adds the person's own rules, from `[rules]`.
    pub fn with_rules(self, table: Option<&toml::Table>) -> Result<Self, ComputerError> {
        let Some(table) = table else { return Ok(self) };
        let rules = Rules::with(table)
            .map_err(|e| ComputerError::new(ErrorCode::BadRequest, format!("[rules]: {e}")))?;
        Ok(Self { rules: Arc::new(rules), ..self })
    }

    /// Adds the MCP servers of `[mcp]`. MCP servers never receive the key of a model provider.
    pub fn with_mcp(self, table: Option<&toml::Table>) -> Result<Self, ComputerError> {
        let tools = mcp_tools::settings(table)?;
        for (server, settings) in &tools.servers {
            if let Some(key) = settings.endpoint.keys().iter().find(|key| self.is_provider_key(key)) {
                let message = format!(
                    "[mcp.{server}] {key:?} is the key of a model provider, which is never given to a server; store \
                     the server's own key under another name, with: choir keys set {server}-{key}"
                );
                return Err(ComputerError::new(ErrorCode::BadRequest, message));
            }
        }
        Ok(Self { mcp_settings: Arc::new(tools), ..self })
    }

    fn is_provider_key(&self, key: &str) -> bool {
        self.catalog().providers.contains_key(key)
    }

    pub fn catalog(&self) -> &Catalog {
        self.shared_gateway.catalog()
    }

    /// Adds the keys of each user.
    #[must_use]
    pub fn with_keys(self, keys: UserKeys) -> Self {
        Self { keys, ..self }
    }

    /// The model that a new run of this user would use, given the requested one.
    pub fn choose_model(&self, user: &UserId, requested: Option<&str>) -> Result<ChosenModel, ModelError> {
        self.gateway(user).choose(requested, Role::Conductor.name())
    }

    /// All models, with their state for this user.
    pub fn model_lines(&self, user: &UserId) -> Vec<ModelLine> {
        model_lines(&self.gateway(user))
    }

    pub fn gateway(&self, user: &UserId) -> Gateway {
        let gateway = self.shared_gateway.with_keys((self.keys)(user));
        if let Some(local) = &self.local_services.local {
            gateway.set_local_model(Arc::clone(local) as Arc<dyn LocalModel>);
        }
        gateway
    }

    /// Adds the services of `[web.search]` and `[telemetry]`.
    pub fn with_services(self, services: &ServicesConfig) -> Result<Self, ComputerError> {
        let search = services
            .search
            .as_ref()
            .map(Search::new)
            .transpose()
            .map_err(|e| ComputerError::new(ErrorCode::BadRequest, e.to_string()))?;
        let telemetry = services.telemetry.as_ref().map(Telemetry::new).transpose()?;
        Ok(Self { search, telemetry, ..self })
    }

    fn web(&self, user: &UserId) -> Option<Arc<dyn Web>> {
        let (pages, search) = (self.local_services.web.clone()?, self.search.clone());
        Some(match search {
            Some(search) => Arc::new(WebWithSearch { pages, search, keys: (self.keys)(user) }),
            None => pages,
        })
    }

    /// The services of one user.
    pub fn services(&self, user: &UserId) -> UserServices {
        let (search, telemetry) = (self.search.clone(), self.telemetry.clone());
        UserServices { search, telemetry, keys: (self.keys)(user) }
    }

    /// The MCP tools of one computer. `on_start` is called when one of their programs starts.
    pub fn mcp_tools(&self, computer: &Computer, on_start: OnStart) -> McpTools {
        let user = computer.log().user();
        let cells = computer.cells();
        let launch = McpServerCells::new(
            cells.settings().clone(),
            cells.shared_backend(),
            &computer.paths,
            user.to_string(),
            computer::cells::cells_dir(&computer.paths),
            &self.rules,
        );
        self.mcp_tools_with(&computer.paths, user, Arc::new(launch.with_on_start(on_start)))
    }

    /// Like [`mcp_tools`](Self::mcp_tools), with another way to start programs.
    pub fn mcp_tools_with(
        &self,
        place: &ComputerPaths,
        user: &UserId,
        launch: Arc<dyn mcp::Launch>,
    ) -> McpTools {
        let keys = (self.keys)(user);
        let keys: mcp::Keys =
            Arc::new(move |name| Some(mcp::Zeroizing::new(keys.key(name)?.expose().to_owned())));
        McpTools::new(&self.mcp_settings, &place.state, launch, keys)
    }

    pub fn agent_environment(
        &self,
        port: Arc<dyn agents::ComputerPort>,
        gateway: Gateway,
        user: &UserId,
        tools: &McpTools,
    ) -> AgentEnvironment {
        let toolbox = (!tools.is_empty()).then(|| Arc::new(tools.clone()) as Arc<dyn Toolbox>);
        AgentEnvironment {
            port,
            gateway,
            rules: Arc::clone(&self.rules),
            web: self.web(user),
            toolbox,
            reserved: std::sync::Mutex::default(),
            rooms: std::sync::Mutex::default(),
            local: Arc::clone(&self.local_model_lock),
        }
    }
}

/// The models of a catalog, and why each cannot be used, if so.
pub fn model_lines(gateway: &Gateway) -> Vec<ModelLine> {
    let lines = gateway.catalog().models.iter().map(|(name, model)| ModelLine {
        name: name.clone(),
        provider: model.provider.clone(),
        usable: gateway.is_usable(name),
        problem: gateway.unusable_reason(name),
        reason: gateway.problem(name).map(|problem| problem.reason),
        input_price: model.prices.map(|prices| prices.input),
        output_price: model.prices.map(|prices| prices.output),
        context: model.context,
    });
    lines.collect()
}

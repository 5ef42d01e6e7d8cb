//! What the agents of this machine's computers think with: models, rules, the web, tools of others. Each user's keys are their own.

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

use crate::mcp_tools::{self, McpTools};
use crate::server_cells::{OnStart, ServerCells};
use crate::services::UserServices;
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::web::SearchedWeb;
use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;
use web_access::search::{Search, SearchConfig};

/// Whoever knows the keys of a user.
pub type KeysOf = Arc<dyn Fn(&UserId) -> Arc<dyn ApiKeys> + Send + Sync>;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct AgentServices {
    pub catalog: Arc<Catalog>,
    pub keys: KeysOf,
    pub outside: MachineServices,
    /// Who searches the web, if anybody does.
    pub search: Option<Search>,
    pub telemetry: Option<Telemetry>,
    pub rules: Arc<Rules>,
    /// MCP servers, as `[mcp]` names them.
    pub tools: Arc<mcp::Settings>,
    /// Whom the machine's own model works for, whoever's agent it is.
    pub alone: Arc<LocalModelLock>,
}

impl std::fmt::Debug for AgentServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentServices")
    }
}

/// Whoever keeps the model of this machine: its weights and its process.
pub trait LocalModelHost: LocalModel {
    fn line(&self) -> LocalModelLine;
    /// Begins to fetch the weights, since the person agreed; nothing, if they are here or on their way.
    fn fetch(&self);
    /// The person does not want the weights, and is not asked again; fetching them is ended.
    fn decline(&self) -> Result<(), ComputerError>;
    /// Ends the fetching, or the process.
    fn stop(&self);
}

/// What a machine's agents are given beside models of others: the model of its own, and the web.
#[derive(Clone, Default)]
pub struct MachineServices {
    pub local: Option<Arc<dyn LocalModelHost>>,
    pub web: Option<Arc<dyn Web>>,
}

impl std::fmt::Debug for MachineServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MachineServices")
    }
}

/// What a machine's `choir.toml` says of services beside models.
#[derive(Debug, Clone, Default)]
pub struct Services {
    pub search: Option<SearchConfig>,
    pub telemetry: Option<TelemetryConfig>,
}

/// Nobody has a key.
struct NoKeys;

impl ApiKeys for NoKeys {
    fn key(&self, _: &str) -> Option<ApiKey> {
        None
    }
}

impl AgentServices {
    /// The catalog as `[models]` changes it, the built-in rules, and no key for anybody.
    pub fn new(models: Option<&toml::Table>) -> Result<Self, ComputerError> {
        let wrong =
            |e: &dyn std::fmt::Display| ComputerError::new(ErrorCode::BadRequest, format!("[models]: {e}"));
        let catalog = Catalog::load(models).map_err(|e| wrong(&e))?;
        let rules = Rules::built_in().map_err(|e| wrong(&e))?;
        let keys: KeysOf = Arc::new(|_| Arc::new(NoKeys));
        Ok(Self {
            catalog: Arc::new(catalog),
            keys,
            outside: MachineServices::default(),
            search: None,
            telemetry: None,
            rules: Arc::new(rules),
            tools: Arc::default(),
            alone: Arc::default(),
        })
    }

    /// The same with the person's own rules, from `[rules]`.
    pub fn with_rules(self, table: Option<&toml::Table>) -> Result<Self, ComputerError> {
        let Some(table) = table else { return Ok(self) };
        let rules = Rules::with(table)
            .map_err(|e| ComputerError::new(ErrorCode::BadRequest, format!("[rules]: {e}")))?;
        Ok(Self { rules: Arc::new(rules), ..self })
    }

    /// The same with the MCP servers of `[mcp]`. The key of a model's provider is for that provider alone, so none is
    /// given to a server.
    pub fn with_tools(self, table: Option<&toml::Table>) -> Result<Self, ComputerError> {
        let tools = mcp_tools::settings(table)?;
        for (server, settings) in &tools.servers {
            if let Some(key) = settings.endpoint.keys().iter().find(|key| self.is_of_a_provider(key)) {
                let message = format!(
                    "[mcp.{server}] {key:?} is the key of a provider of models, which no server is given; keep \
                     the server's own under another name, with: choir keys set {server}-{key}"
                );
                return Err(ComputerError::new(ErrorCode::BadRequest, message));
            }
        }
        Ok(Self { tools: Arc::new(tools), ..self })
    }

    fn is_of_a_provider(&self, key: &str) -> bool {
        self.catalog.providers.contains_key(key)
    }

    /// The same with the keys of each user.
    #[must_use]
    pub fn with_keys(self, keys: KeysOf) -> Self {
        Self { keys, ..self }
    }

    /// The model that would take an objective of this user now, if the person wants this one for it.
    pub fn for_a_run(&self, user: &UserId, wanted: Option<&str>) -> Result<ChosenModel, ModelError> {
        self.gateway(user).choose(wanted, Role::Conductor.name())
    }

    /// All models, as they stand for this user.
    pub fn lines(&self, user: &UserId) -> Vec<ModelLine> {
        model_lines(&self.gateway(user))
    }

    pub fn gateway(&self, user: &UserId) -> Gateway {
        let gateway = Gateway::new(Arc::clone(&self.catalog), (self.keys)(user));
        if let Some(local) = &self.outside.local {
            gateway.set_local_model(Arc::clone(local) as Arc<dyn LocalModel>);
        }
        gateway
    }

    /// The same with what `[web.search]` and `[telemetry]` of a machine say.
    pub fn with_services(self, services: &Services) -> Result<Self, ComputerError> {
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
        let (pages, search) = (self.outside.web.clone()?, self.search.clone());
        Some(match search {
            Some(search) => Arc::new(SearchedWeb { pages, search, keys: (self.keys)(user) }),
            None => pages,
        })
    }

    /// Services as one user has them.
    pub fn services(&self, user: &UserId) -> UserServices {
        let (search, telemetry) = (self.search.clone(), self.telemetry.clone());
        UserServices { search, telemetry, keys: (self.keys)(user) }
    }

    /// The tools of MCP servers for one computer. `on_start` is called when one of their programs starts.
    pub fn tools(&self, computer: &Computer, on_start: OnStart) -> McpTools {
        let user = computer.log().user();
        let cells = computer.cells();
        let launch = ServerCells::new(
            cells.settings().clone(),
            cells.shared_backend(),
            &computer.paths,
            user.to_string(),
            computer::cells::cells_dir(&computer.paths),
            &self.rules,
        );
        self.tools_in(&computer.paths, user, Arc::new(launch.with_on_start(on_start)))
    }

    /// The same, started by somebody else than the computer.
    pub fn tools_in(&self, place: &ComputerPaths, user: &UserId, launch: Arc<dyn mcp::Launch>) -> McpTools {
        let keys = (self.keys)(user);
        let keys: mcp::Keys =
            Arc::new(move |name| Some(mcp::Zeroizing::new(keys.key(name)?.expose().to_owned())));
        McpTools::new(&self.tools, &place.state, launch, keys)
    }

    pub fn kit(
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
            local: Arc::clone(&self.alone),
        }
    }
}

/// The models of a catalog, and what is in the way of each.
pub fn model_lines(gateway: &Gateway) -> Vec<ModelLine> {
    let lines = gateway.catalog().models.iter().map(|(name, model)| ModelLine {
        name: name.clone(),
        provider: model.provider.clone(),
        usable: gateway.is_usable(name),
        problem: gateway.unusable_reason(name),
        input_price: model.prices.map(|prices| prices.input),
        output_price: model.prices.map(|prices| prices.output),
        context: model.context,
    });
    lines.collect()
}

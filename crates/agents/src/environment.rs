//! What the runs of one computer work with: its port, models, rules and tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use models::Gateway;

use crate::budget::Reserved;
use crate::local_model_lock::LocalModelLock;
use crate::port::ComputerPort;
use crate::rules::Rules;
use crate::toolbox::Toolbox;
use crate::web::Web;

/// What the runs of one computer share.
pub struct AgentEnvironment {
    pub port: Arc<dyn ComputerPort>,
    pub gateway: Gateway,
    pub rules: Arc<Rules>,
    pub web: Option<Arc<dyn Web>>,
    /// Tools of MCP servers, where there are any.
    pub toolbox: Option<Arc<dyn Toolbox>>,
    /// The maximum that turns of all runs that are under way can cost.
    pub reserved: Mutex<Reserved>,
    /// Tokens that a model reads at once, by its name, where that turned out to be less than the catalog says.
    pub rooms: Mutex<HashMap<String, u64>>,
    /// Which run uses the model of this machine.
    pub local: Arc<LocalModelLock>,
}

impl std::fmt::Debug for AgentEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentEnvironment")
    }
}

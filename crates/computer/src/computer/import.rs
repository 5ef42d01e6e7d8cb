//! Files of another computer arrive as one operation.

use std::fs::File;
use std::path::Path;

use event_log::writer::{ChangeRequest, Mode};
use kernel::Action;
use shared_types::{FilePath, Taint};

use super::{Caller, Computer, Progress};
use crate::error::{ComputerError, ErrorCode, from_anyhow};
use crate::protocol::ChangeResult;
use archive::{Archive, ImportError, ImportPlan, Limits, plan_import, stage_contents};

impl Computer {
    /// Checks the whole archive, then brings its files in. Anything that does not verify changes nothing.
    pub(super) fn import(
        &self,
        caller: &Caller,
        file: &Path,
        into: Option<&FilePath>,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let source = File::open(file)
            .map_err(|e| ComputerError::new(ErrorCode::NotFound, format!("{}: {e}", file.display())))?;
        let verifying = |done, total| progress("verifying", done, total);
        let verified = Archive::verify(source, Limits::default(), &verifying).map_err(refused)?;
        let ImportPlan { import_event, files, omitted } = plan_import(&verified, into).map_err(refused)?;
        // Paths that are taken are found before a single byte is brought in.
        let taken = {
            let files = files.clone();
            self.writer.inspect(move |view| {
                let clashes =
                    |(path, node): &&(FilePath, _)| view.files.get(path).is_some_and(|today| today != node);
                files.iter().filter(clashes).map(|(path, _)| path.clone()).collect::<Vec<_>>()
            })?
        };
        if !taken.is_empty() {
            return Err(kernel::Rejection::Taken { paths: taken }.into());
        }
        stage_contents(&verified, &**self.log(), &|done, total| progress("importing", done, total))
            .map_err(refused)?;
        let caller = caller.clone().with_taint(vec![Taint::IMPORT]);
        let action = Action::ImportFiles { origin: import_event, files };
        let mut done = self.change(&caller, ChangeRequest::Do(action), Vec::new(), Mode::Commit, progress)?;
        done.notes.extend(omitted.iter().map(|path| format!("{path} stayed behind: its bytes were purged")));
        Ok(done)
    }
}

fn refused(error: ImportError) -> ComputerError {
    ComputerError::new(ErrorCode::Refused, from_anyhow(&anyhow::Error::new(error)).message)
}

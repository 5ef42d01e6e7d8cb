//! After any history: everything is rebuilt from the log to the same content, and an older projection catches up with
//! it without inventing anything.

use std::fs;

use event_log::replay::view_from_nothing;
use proptest::prelude::*;

use crate::computer::Computer;
use crate::history::{config, happen, steps, unprojected};

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_rebuild_from_nothing_gives_the_same_rows_files_and_root(history in steps(40)) {
        let mut computer = Computer::new();
        happen(&mut computer, &history);
        computer.settle();
        computer.assert_faithful();
        let (rows, disk, root, head) = (computer.rows(), computer.disk(), computer.root(), computer.head());

        computer.projector().rebuild(&crate::computer::quietly).unwrap();
        prop_assert_eq!(&computer.rows(), &rows, "rows computed again in place");

        computer.stop();
        computer.forget_views();
        fs::remove_dir_all(computer.workspace()).unwrap();
        fs::create_dir(computer.workspace()).unwrap();
        computer.start();
        computer.catch_up();
        prop_assert_eq!(computer.rows(), rows);
        prop_assert_eq!(computer.disk(), disk);
        prop_assert_eq!(computer.head(), head, "nothing was recorded by that");
        prop_assert_eq!(computer.root(), root);
        prop_assert_eq!(view_from_nothing(computer.log(), head).unwrap().root(), root);
    }

    #[test]
    fn an_older_projection_converges(
        before in steps(20),
        between in steps(20),
        after in unprojected(8),
    ) {
        let mut computer = Computer::new();
        happen(&mut computer, &before);
        computer.settle();
        let older = computer.copy_views();
        happen(&mut computer, &between);
        computer.settle();
        happen(&mut computer, &after);
        let (nodes, head) = (computer.nodes(), computer.head());

        computer.stop();
        computer.put_back_views(&older);
        computer.start();
        computer.settle();
        computer.assert_faithful();
        prop_assert_eq!(computer.head(), head, "the projector's own writes were taken for edits");
        prop_assert_eq!(computer.nodes(), nodes);
    }
}

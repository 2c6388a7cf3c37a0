//! What callers' SQL may do: one decision per action that `SQLite` asks about while it compiles a statement.
//!
//! It names what is allowed to reach outside of callers' own tables and refuses the rest. What the question does not
//! tell (the new name of a renamed table, a virtual table's shadow tables) is caught behind it, by
//! [`crate::schema::strangers`].

use rusqlite::hooks::{AuthAction, AuthContext};

use crate::schema::{is_internal, is_ours};

/// Pragmas that only read, with or without an argument.
const READING_PRAGMAS: [&str; 8] = [
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Pragmas that only read as long as they have no argument.
const READING_PRAGMAS_BARE: [&str; 9] = [
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "freelist_count",
    "page_count",
    "page_size",
    "schema_version",
    "user_version",
];

/// Modules of virtual tables that keep to the file they are in.
const MODULES: [&str; 3] = ["fts5", "rtree", "rtree_i32"];

/// Functions that reach outside of the file or into the library.
const FORBIDDEN_FUNCTIONS: [&str; 3] = ["fts3_tokenizer", "load_extension", "sqlite_log"];

/// Table-valued functions that show what callers have no business with: the pages of internal tables.
const FORBIDDEN_TABLES: [&str; 3] = ["dbstat", "sqlite_dbpage", "sqlite_dbptr"];

/// The answer to one action.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may.
    Allow,
    /// It may, and the schema changes by it.
    AllowSchemaChange,
    /// It may not, and this is what it would have done.
    Deny(String),
}

/// Whether a caller's statement may do this.
pub(crate) fn judge(context: &AuthContext<'_>) -> Verdict {
    use AuthAction as A;
    let in_temp = context.database_name.is_some_and(|name| name.eq_ignore_ascii_case("temp"));
    match context.action {
        A::Read { table_name, .. } if is_internal(table_name) || listed(&FORBIDDEN_TABLES, table_name) => {
            deny("read", table_name)
        }
        A::Insert { table_name } => write("insert into", table_name),
        A::Update { table_name, .. } => write("update", table_name),
        A::Delete { table_name } => write("delete from", table_name),
        A::Function { function_name } if listed(&FORBIDDEN_FUNCTIONS, function_name) => {
            deny("call", function_name)
        }
        A::Select | A::Recursive | A::Read { .. } | A::Function { .. } => Verdict::Allow,
        A::Pragma { pragma_name, pragma_value } => pragma(pragma_name, pragma_value),
        A::CreateVtable { module_name, .. } if !listed(&MODULES, module_name) => {
            deny("use the module", module_name)
        }
        // The temporary schema is the connection's: what a caller left there would be seen by the next one, and a
        // table there hides one of the same name here.
        _ if in_temp => deny("use", "the temporary schema"),
        A::CreateTable { table_name }
        | A::DropTable { table_name }
        | A::AlterTable { table_name, .. }
        | A::CreateVtable { table_name, .. }
        | A::DropVtable { table_name, .. } => schema_change("change", table_name, table_name),
        A::CreateIndex { index_name, table_name } | A::DropIndex { index_name, table_name } => {
            schema_change("index", table_name, index_name)
        }
        A::CreateTrigger { trigger_name, table_name } | A::DropTrigger { trigger_name, table_name } => {
            schema_change("put a trigger on", table_name, trigger_name)
        }
        A::CreateView { view_name } | A::DropView { view_name } => {
            schema_change("change", view_name, view_name)
        }
        A::Reindex { index_name } => schema_change("reindex", index_name, index_name),
        A::Analyze { .. } => Verdict::AllowSchemaChange,
        A::Attach { .. } | A::Detach { .. } => deny("reach", "another file"),
        A::Transaction { .. } | A::Savepoint { .. } => {
            deny("control", "the transaction (the ledger opens and ends it)")
        }
        _ => deny("do", "what is not known to be safe"),
    }
}

fn listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn deny(what: &str, name: &str) -> Verdict {
    Verdict::Deny(format!("{what} {name}"))
}

fn write(what: &str, table: &str) -> Verdict {
    if is_ours(table) { deny(what, table) } else { Verdict::Allow }
}

fn schema_change(what: &str, table: &str, name: &str) -> Verdict {
    if is_ours(table) {
        deny(what, table)
    } else if is_ours(name) {
        deny("take the name", name)
    } else {
        Verdict::AllowSchemaChange
    }
}

fn pragma(name: &str, value: Option<&str>) -> Verdict {
    if listed(&READING_PRAGMAS, name) || (value.is_none() && listed(&READING_PRAGMAS_BARE, name)) {
        Verdict::Allow
    } else {
        deny("use the pragma", name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(action: AuthAction<'_>) -> Verdict {
        judge(&AuthContext { action, database_name: Some("main"), accessor: None })
    }

    #[test]
    fn events_are_for_reading_and_internal_tables_are_not() {
        assert_eq!(judged(AuthAction::Read { table_name: "Events", column_name: "seq" }), Verdict::Allow);
        assert!(matches!(
            judged(AuthAction::Read { table_name: "LEASEHOLD_meta", column_name: "" }),
            Verdict::Deny(_)
        ));
        for table_name in ["events", "EVENTS", "leasehold_x"] {
            for action in [
                AuthAction::Insert { table_name },
                AuthAction::Delete { table_name },
                AuthAction::Update { table_name, column_name: "seq" },
                AuthAction::DropTable { table_name },
                AuthAction::CreateIndex { index_name: "i", table_name },
                AuthAction::CreateTrigger { trigger_name: "t", table_name },
                AuthAction::AlterTable { database_name: "main", table_name },
            ] {
                assert!(matches!(judged(action), Verdict::Deny(_)), "{action:?}");
            }
        }
        assert_eq!(judged(AuthAction::Insert { table_name: "mine" }), Verdict::Allow);
        assert_eq!(judged(AuthAction::CreateTable { table_name: "mine" }), Verdict::AllowSchemaChange);
    }

    #[test]
    fn what_is_unknown_is_refused() {
        assert!(matches!(judged(AuthAction::Unknown { code: 99, arg1: None, arg2: None }), Verdict::Deny(_)));
        let temporary = AuthContext {
            action: AuthAction::CreateTempTable { table_name: "t" },
            database_name: Some("temp"),
            accessor: None,
        };
        assert!(matches!(judge(&temporary), Verdict::Deny(_)));
    }
}

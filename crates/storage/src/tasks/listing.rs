//! Finding tasks.

use tribune_core::{Error, Result, UserId};

use super::{Task, TaskCursor, TaskFilter, TaskPage, TaskSort, columns, task};
use crate::connection::Statement;
use crate::text::{fold, tag_pattern, word_pattern};
use crate::value::{Row, Value, with_id};
use crate::{MAX_PAGE, MAX_WORD_BYTES, MAX_WORDS, one_more};

/// Sorts tasks without a due date last. The index uses the same value.
const NEVER: i64 = 99_999_999;

/// Conditions that must all hold, with their values.
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    fn owned_by(owner: &UserId) -> Self {
        Self { sql: "owner = $1".to_owned(), values: vec![owner.into()] }
    }

    /// Binds a value and returns its parameter name.
    fn value(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    fn and(&mut self, condition: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
    }

    /// `condition` ends before the value.
    fn and_value(&mut self, condition: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            let name = self.value(value);
            self.and(&format!("{condition} {name}"));
        }
    }

    fn and_like(&mut self, column: &'static str, pattern: String) {
        let like = self.like(column, pattern);
        self.and(&like);
    }

    fn like(&mut self, column: &'static str, pattern: String) -> String {
        let name = self.value(pattern);
        format!(r"{column} LIKE {name} ESCAPE '\'")
    }
}

/// The page and the total in one statement, so that they are consistent.
pub(super) fn page(owner: &UserId, filter: &TaskFilter, limit: usize, after: Option<TaskCursor>) -> Result<Statement> {
    let mut conditions = filtered(owner, filter)?;
    let all = conditions.sql.clone();
    if let Some(cursor) = after {
        let rest = behind(filter.sort, cursor, &mut conditions);
        conditions.and(&rest);
    }
    let limit = conditions.value(one_more(limit));
    let sql = format!(
        "SELECT total, {columns} FROM (SELECT COUNT(*) AS total FROM tasks WHERE {all}) AS matching \
         LEFT JOIN (SELECT {columns} FROM tasks WHERE {page} ORDER BY {order} LIMIT {limit}) AS page ON TRUE \
         ORDER BY {order}",
        columns = columns!(),
        page = conditions.sql,
        order = order(filter.sort),
    );
    Ok(Statement::composed(sql, conditions.values))
}

pub(super) fn read_page(rows: &[Row], limit: usize, after: Option<TaskCursor>) -> Result<TaskPage> {
    let limit = limit.min(MAX_PAGE);
    let total = rows.first().map_or(Ok(0), |row| row.count("total"))?;
    // An empty page still has a row, for the total.
    let found = with_id(rows)?;
    let tasks: Vec<Task> = found.iter().take(limit).map(|row| task(row)).collect::<Result<_>>()?;
    let next = match found.len() > limit {
        true => tasks.last().map(TaskCursor::from).or(after),
        false => None,
    };
    Ok(TaskPage { tasks, total, next })
}

/// Tasks that contain any of the words, newest first.
pub(super) fn any_word(owner: &UserId, words: &[String], limit: usize) -> Result<Statement> {
    check_words(words)?;
    let mut conditions = Conditions::owned_by(owner);
    let any: Vec<String> = words.iter().map(|word| conditions.like("search", word_pattern(word))).collect();
    conditions.and(&format!("({})", any.join(" OR ")));
    let limit = conditions.value(one_more(limit) - 1);
    let sql = format!(
        "SELECT {columns} FROM tasks WHERE {conditions} ORDER BY id DESC LIMIT {limit}",
        columns = columns!(),
        conditions = conditions.sql,
    );
    Ok(Statement::composed(sql, conditions.values))
}

fn filtered(owner: &UserId, filter: &TaskFilter) -> Result<Conditions> {
    check_words(&filter.words)?;
    let mut conditions = Conditions::owned_by(owner);
    match filter.completed {
        Some(true) => conditions.and("completed_at IS NOT NULL"),
        Some(false) => conditions.and("completed_at IS NULL"),
        None => {}
    }
    conditions.and_value("priority =", filter.priority);
    conditions.and_value("category_key =", filter.category.as_deref().map(fold));
    if let Some(tag) = &filter.tag {
        check_length(tag)?;
        conditions.and_like("tags_key", tag_pattern(tag));
    }
    conditions.and_value("due_date >=", filter.due_from);
    conditions.and_value("due_date <=", filter.due_until);
    for word in &filter.words {
        conditions.and_like("search", word_pattern(word));
    }
    Ok(conditions)
}

fn check_words(words: &[String]) -> Result<()> {
    if words.len() > MAX_WORDS {
        return Err(Error::invalid_argument(format!(
            "a search can have at most {MAX_WORDS} words, and this has {}: use fewer",
            words.len()
        )));
    }
    words.iter().try_for_each(|word| check_length(word))
}

/// SQLite limits patterns to 50,000 bytes, and escaping makes them longer.
fn check_length(text: &str) -> Result<()> {
    if text.len() > MAX_WORD_BYTES {
        return Err(Error::invalid_argument(format!(
            "a word or tag can have at most {MAX_WORD_BYTES} bytes: use a shorter one"
        )));
    }
    Ok(())
}

fn order(sort: TaskSort) -> &'static str {
    match sort {
        TaskSort::Newest => "id DESC",
        TaskSort::Due => "COALESCE(due_date, 99999999), id",
        TaskSort::Priority => "priority, id",
    }
}

fn behind(sort: TaskSort, cursor: TaskCursor, conditions: &mut Conditions) -> String {
    let id = conditions.value(cursor.id);
    match sort {
        TaskSort::Newest => format!("id < {id}"),
        TaskSort::Due => {
            let due = conditions.value(cursor.due_date.map_or(Value::from(NEVER), Value::from));
            format!("(COALESCE(due_date, 99999999), id) > ({due}, {id})")
        }
        TaskSort::Priority => {
            let priority = conditions.value(cursor.priority);
            format!("(priority, id) > ({priority}, {id})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_the_number_in_the_sql() {
        assert!(order(TaskSort::Due).contains(&NEVER.to_string()));
    }

    #[test]
    fn nothing_from_outside_gets_into_the_sql() {
        let evil = "'; DROP TABLE tasks; --".to_owned();
        let filter = TaskFilter {
            category: Some(evil.clone()),
            tag: Some(evil.clone()),
            words: vec![evil],
            ..TaskFilter::default()
        };
        let statement = page(&UserId::local(), &filter, 10, None).expect("a statement");
        assert!(!format!("{statement:?}").split("values").next().expect("the SQL").contains("DROP"));
    }
}

//! What the traits promise, promise by promise, on both databases.

mod audit;
mod conversations;
mod grants;
mod listing;
mod tasks;
mod tokens;
mod users;

macro_rules! promises {
    ($($module:ident: $($promise:ident),+;)+) => {
        mod on_sqlite {
            $(mod $module { $(promises!(@test $module $promise Sqlite);)+ })+
        }
        mod on_postgres {
            $(mod $module { $(promises!(@test $module $promise Postgres);)+ })+
        }
    };
    (@test $module:ident $promise:ident $kind:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            let database = $crate::test_database::TestDatabase::new($crate::test_database::Kind::$kind).await;
            let store = database.store();
            $crate::contract::$module::$promise(&store).await;
            store.close().await;
        }
    };
}

promises! {
    audit:
        audit_lists_newest_by_user_and_time,
        audit_keeps_odd_text;
    tasks:
        task_round_trips,
        owner_has_at_most_so_many_tasks,
        times_are_truncated_to_microseconds,
        other_owners_do_not_exist,
        duplicate_id_is_refused,
        update_changes_and_clears_fields,
        updated_task_is_found_by_new_text,
        concurrent_updates_all_apply,
        last_update_is_undone,
        task_is_completed_and_reopened,
        concurrent_toggles_end_correctly,
        deleted_task_is_returned_once,
        nul_is_refused_without_side_effects,
        concurrent_callers_get_their_own_answers;
    listing:
        lists_match_a_plain_model,
        pages_neither_repeat_nor_skip_while_tasks_are_added,
        page_is_bounded_and_total_exact,
        wildcards_are_plain_text,
        tags_match_whole_tags,
        matching_ignores_case_in_every_script,
        any_word_finds_newest_first,
        oversized_search_is_refused;
    users:
        user_is_found_by_name_and_login,
        duplicate_user_or_login_is_refused,
        new_password_ends_access,
        removed_user_has_no_access,
        sessions_end_and_expire,
        session_ends_with_its_token;
    grants:
        grant_is_found_by_its_secrets,
        code_is_used_once_by_many,
        refresh_token_has_a_grace,
        revoked_grant_gives_nothing,
        expired_grants_are_deleted,
        registrations_are_bounded,
        programs_in_use_stay_registered;
    conversations:
        exchange_round_trips,
        state_has_last_messages,
        pending_calls_are_taken_once,
        pending_calls_outlive_later_messages,
        new_conversation_replaces_the_oldest,
        latest_conversation_is_last_active,
        activity_never_goes_back,
        preview_has_hundred_characters,
        request_is_stored_once,
        concurrent_request_is_stored_once,
        request_keys_are_per_owner,
        foreign_conversation_is_not_found,
        one_owner_wins_a_new_id,
        exchanges_never_interleave,
        messages_page_back_while_more_are_added,
        conversations_page_while_more_are_added,
        other_owners_do_not_exist,
        rejected_exchange_leaves_nothing_behind;
    tokens:
        token_is_found_by_hash,
        duplicate_token_id_or_hash_is_refused,
        tokens_are_listed_by_creation,
        revoking_twice_keeps_the_first_time,
        an_earlier_use_changes_nothing;
}

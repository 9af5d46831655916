//! What the traits promise, promise by promise, on both databases.

mod conversations;
mod listing;
mod tasks;
mod tokens;

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
            let home = $crate::home::Home::of($crate::home::Kind::$kind).await;
            let store = home.store();
            $crate::contract::$module::$promise(&store).await;
            store.close().await;
        }
    };
}

promises! {
    tasks:
        a_task_comes_back_as_it_was,
        times_are_kept_to_the_microsecond,
        other_owners_do_not_exist,
        an_id_can_be_added_once,
        an_update_changes_what_it_names_and_clears,
        an_update_is_found_by_what_is_there_now,
        updates_at_once_all_stay,
        completing_and_taking_back,
        turning_round_at_once_ends_in_the_right_state,
        what_is_deleted_is_given_back_once,
        nul_is_refused_and_harms_nobody,
        many_at_once_get_their_own_answers;
    listing:
        lists_are_what_a_plain_list_would_be,
        pages_neither_repeat_nor_skip_while_tasks_are_added,
        a_page_is_bounded_and_the_total_exact,
        wildcards_are_plain_text,
        tags_are_whole_tags,
        case_is_not_regarded_in_any_script,
        any_word_finds_newest_first,
        too_much_to_look_for_is_refused;
    conversations:
        an_exchange_comes_back,
        the_state_has_what_was_said_last,
        what_waits_is_taken_by_one,
        the_latest_is_the_last_active,
        activity_never_goes_back,
        a_preview_is_a_hundred_characters,
        a_request_is_kept_once,
        a_request_sent_many_times_at_once_is_kept_once,
        keys_of_other_owners_are_other_keys,
        a_foreign_conversation_is_not_found,
        of_two_owners_of_one_new_id_one_wins,
        exchanges_never_interleave,
        messages_page_back_while_more_are_added,
        conversations_page_while_more_are_added,
        other_owners_do_not_exist,
        what_cannot_be_kept_leaves_nothing_behind;
    tokens:
        a_token_comes_back_by_its_hash,
        an_id_and_a_hash_can_be_added_once,
        tokens_are_listed_as_they_were_made,
        revoking_twice_keeps_the_first_time,
        an_earlier_use_changes_nothing;
}

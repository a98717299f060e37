//! Frames as people see them, and keys as people press them.

use expect_test::{Expect, expect};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

use super::sort::Sort;
use super::state::{Deed, Key, State};
use super::theme::Theme;
use super::{frame, opened};
use crate::gauges::ask::{Health, Node, Wanted};
use crate::gauges::{Holders, QueueNow, Tracker};

const PLAIN: Theme = Theme { has_colours: false };

fn lane(name: &str, level: i32, ready: u64, oldest_age_ms: u64, published: u64, settled: u64) -> Value {
    json!({
        "lane": name, "level": level, "ready": ready, "oldest_age_ms": oldest_age_ms, "published": published, "settled": settled,
        "wait": {"buckets": [[10, settled], [100, settled], [1_000, settled]], "count": settled},
    })
}

/// Two polls of the same three queues, a second apart.
fn queues() -> Vec<QueueNow> {
    let at = |second: u64| {
        let named = |critical: u64, normal: u64| {
            json!([
                lane("critical", 4, critical, 61_000, 10 + second * 3, second),
                lane("normal", 2, normal, 125_000, 100 + second * 120, second * 40),
                lane("background", 0, 9_000, 7_300_000, 20_000, 0),
            ])
        };
        let mut mails = lane("4", 4, 12, 800, 500 + second, 490 + second * 20);
        mails["leased"] = 7.into();
        mails["dead"] = (3 + second).into();
        mails["dead_lettered"] = (3 + second).into();
        let queues = json!([
            {"name": "executions", "settings": {"scheme": "named", "max_length": 9_000}, "consumers": 2, "lanes": named(3, 345)},
            {"name": "mails.outgoing", "settings": {"scheme": "ten-level"}, "consumers": 1, "lanes": [mails]},
            {"name": "reports", "settings": {"scheme": "ten-level", "paused": true}, "lanes": []},
        ]);
        serde_json::from_value(queues).expect("queues")
    };
    let mut tracker = Tracker::default();
    tracker.turn(0, at(0), true);
    tracker.turn(1_000, at(1), true)
}

fn state() -> State {
    let mut state = State::new("http://127.0.0.1:15672", "/", Sort::Trouble, 1_000);
    let node = Node { disk_free: 40 << 30, disk_free_limit: 1 << 30, mem_used: 120 << 20 };
    state.answered(Health { version: "0.1.0".to_owned(), node: Some(node), ..Health::default() }, 3);
    state.put_all(queues());
    state
}

fn draw(state: &mut State, width: u16, height: u16, theme: Theme) -> Buffer {
    let lines = state.opened_queue().map_or(0, |queue| opened::lines(queue, &state.holders));
    state.fit(frame::rows(height), lines);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    frame::draw(state, 20_000, theme, &mut buffer);
    buffer
}

/// The screen as text; the chosen row has `<` behind its end.
fn picture(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let mut picture = String::new();
    for row in buffer.content.chunks(width) {
        let text: String = row.iter().map(|cell| cell.symbol()).collect();
        let is_chosen = row.first().is_some_and(|cell| cell.modifier.contains(Modifier::REVERSED));
        picture.push_str(if is_chosen { text.as_str() } else { text.trim_end() });
        picture.push_str(if is_chosen { "<\n" } else { "\n" });
    }
    picture
}

fn check(state: &mut State, width: u16, height: u16, expect: Expect) {
    expect.assert_eq(&picture(&draw(state, width, height, PLAIN)));
}

fn press(state: &mut State, keys: &str) -> Deed {
    keys.chars().map(|c| state.key(Key::Char(c))).last().expect("a key")
}

#[test]
fn a_list_on_a_terminal_as_they_all_are() {
    check(
        &mut state(),
        80,
        12,
        expect![[r#"
            overtake 0.1.0 · http://127.0.0.1:15672                  every 1.0s · by trouble
            ready · disk 40GiB free · memory 120MiB
            3 queues · ready 9,360 · leased 7 · in 124/s · out 61/s · dead 4

            QUEUE           READY OLDEST WAITING  IN/S OUT/S LEASED    P95  DEAD STATE
            executions      9,348  2h01m █▒·····   123    41      0    9ms     0 full       <
            mails.outgoing     12  800ms ▒▒▒▒▒▒▒   1.0    20      7    9ms     4 dead +1
            reports             0      -             -     -      0      -     0 paused



            ↑↓ Enter open  s sort  / find  p pause  ? help  q quit         urgent █▓▒░· bulk
        "#]],
    );
}

#[test]
fn a_list_where_there_is_room() {
    check(
        &mut state(),
        120,
        12,
        expect![[r#"
            overtake 0.1.0 · http://127.0.0.1:15672                                                          every 1.0s · by trouble
            ready · disk 40GiB free · memory 120MiB
            3 queues · ready 9,360 · leased 7 · in 124/s · out 61/s · dead 4

            QUEUE           READY OLDEST URGENT WAITING                   IN/S OUT/S LEASED    P95  DEAD DELAYED STATE
            executions      9,348  2h01m  1m01s █▒······················   123    41      0    9ms     0       0 full               <
            mails.outgoing     12  800ms  800ms ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒   1.0    20      7    9ms     4       0 dead +1
            reports             0      -      -                              -     -      0      -     0       0 paused



            ↑↓ Enter open  s sort  / find  p pause  ? help  q quit                                                 urgent █▓▒░· bulk
        "#]],
    );
}

#[test]
fn a_list_where_there_is_hardly_any() {
    check(
        &mut state(),
        40,
        10,
        expect![[r#"
        overtake 0.1.0 · http://127.0.0.1:15672
        ready · disk 40GiB free · memory 120MiB
        3 queues · ready 9,360 · leased 7 · in …
          QUEUE       READY OLDEST WAITING OUT/S
        F executions  9,348  2h01m █▒·····    41<
        D mails.out…     12  800ms ▒▒▒▒▒▒▒    20
        P reports         0      -             -


        ↑↓ Enter open  s sort  / find  p pause …
    "#]],
    );
}

#[test]
fn a_queue_that_is_open_shows_its_lanes_and_who_holds_what() {
    let mut state = state();
    assert_eq!(state.key(Key::Enter), Deed::Poll);
    assert_eq!(state.wanted(None), Wanted::Opened("executions".to_owned()));
    let mut queue = queues().remove(0);
    queue.sums.leased = 3;
    state.put_opened("executions", Some(queue), holders());
    check(
        &mut state,
        80,
        20,
        expect![[r#"
            overtake 0.1.0 · http://127.0.0.1:15672                               every 1.0s
            ready · disk 40GiB free · memory 120MiB
            executions · full · 2 consumers · ready 9,348 · leased 3 · in 123/s · out 41/s

            LANE        READY OLDEST WAITING  IN/S OUT/S  LEASED    P50    P95  DEAD DELAYED
            critical        3  1m01s █         3.0   1.0       0   10ms   10ms     0       0
            normal        345  2m05s ▒         120    40       0    5ms    9ms     0       0
            background  9,000  2h01m ·······     0     0       0      -      -     0       0

            3 messages leased
            MESSAGE                                  LANE            AGE ENDS IN ATTEMPT
            seq-17                                   critical      1m05s    over       3
            order-5                                  critical      1m05s   29.5s       1
            seq-4                                    critical      1m05s       -       1

            1 consumer over AMQP
            FROM                     USER                 WINDOW TAG
            10.0.0.7:51234           ann                      20 ctag1.5

            Esc back  ↑↓ scroll  p pause  ? help  q quit                   urgent █▓▒░· bulk
        "#]],
    );
    check(
        &mut state,
        40,
        14,
        expect![[r#"
            overtake 0.1.0 · http://127.0.0.1:15672
            ready · disk 40GiB free · memory 120MiB
            executions · full · 2 consumers · ready…

            LANE        READY OLDEST OUT/S  LEASED
            critical        3  1m01s   1.0       0
            normal        345  2m05s    40       0
            background  9,000  2h01m     0       0

            3 messages leased
            MESSAGE            LANE      AGE ENDS IN
            seq-17             criti…  1m05s    over
            order-5            criti…  1m05s   29.5s
            Esc back  ↑↓ scroll  p pause  ? help  q…
        "#]],
    );
    assert_eq!(state.key(Key::Esc), Deed::Poll);
    assert_eq!(state.wanted(Some("x")), Wanted::One("x".to_owned()));
    assert_eq!(state.wanted(None), Wanted::All);
}

fn holders() -> Holders {
    use crate::gauges::{Consumer, Held};
    let held = |id: &str, left_ms, attempt| Held {
        id: id.to_owned(),
        lane: "critical".to_owned(),
        age_ms: 65_000,
        left_ms,
        attempt,
    };
    Holders {
        held: vec![held("seq-17", Some(0), 3), held("order-5", Some(29_500), 1), held("seq-4", None, 1)],
        consumers: vec![Consumer {
            tag: "ctag1.5".to_owned(),
            user: "ann".to_owned(),
            peer: "10.0.0.7:51234".to_owned(),
            window: 20,
        }],
    }
}

#[test]
fn a_broker_that_is_lost_is_shown_as_lost_until_it_is_back() {
    let mut state = state();
    state.lose(8_000, "cannot reach the broker at http://127.0.0.1:15672: refused");
    state.lose(9_000, "cannot reach the broker at http://127.0.0.1:15672: refused");
    let seen = picture(&draw(&mut state, 80, 12, PLAIN));
    assert!(seen.contains("lost for 12.0s, retrying · refused\n"), "{seen}");
    // What was known last stays.
    assert!(seen.contains("executions"), "{seen}");
    state.answered(Health::default(), 3);
    let seen = picture(&draw(&mut state, 80, 12, PLAIN));
    assert!(seen.contains("overtake 0.1.0") && !seen.contains("lost"), "{seen}");
}

#[test]
fn a_broker_that_refuses_publishes_says_so_on_top() {
    let mut state = state();
    let health =
        Health { warning: Some("publishes are refused: the disk is full".to_owned()), ..Health::default() };
    state.answered(health, 3);
    assert!(
        picture(&draw(&mut state, 80, 12, PLAIN)).contains("\npublishes are refused: the disk is full\n")
    );
}

#[test]
fn no_size_is_too_small() {
    for opened in [false, true] {
        let mut state = state();
        if opened {
            state.key(Key::Enter);
            state.put_opened("executions", Some(queues().remove(0)), holders());
        }
        for (width, height) in [(0, 0), (1, 1), (3, 2), (9, 4), (39, 5), (500, 3), (1, 200)] {
            draw(&mut state, width, height, PLAIN);
            state.key(Key::Char('?'));
            draw(&mut state, width, height, PLAIN);
            state.key(Key::Esc);
        }
    }
}

#[test]
fn without_colours_there_are_none_and_urgency_has_its_shade_all_the_same() {
    let mut state = state();
    let plain = draw(&mut state, 80, 12, PLAIN);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let coloured = draw(&mut state, 80, 12, Theme { has_colours: true });
    let shades = |buffer: &Buffer| picture(buffer);
    assert_eq!(shades(&plain), shades(&coloured));
    let colour_of =
        |shade: &str| coloured.content.iter().find(|cell| cell.symbol() == shade).map(|cell| cell.fg);
    assert_eq!([colour_of("█"), colour_of("▒")], [Some(Color::Red), Some(Color::Green)]);
}

#[test]
fn help_fits_a_small_screen_and_any_key_goes_back() {
    let mut state = state();
    press(&mut state, "?");
    check(
        &mut state,
        40,
        20,
        expect![[r#"
            ↑ ↓ j k    choose a queue
            Enter      open it: lanes, who holds it
            Esc        back; drop the filter
            /          only names with this in them
            s          sort by trouble, ready, in…
            + -        ask less often, or more often
            p q Ctrl-Z pause, quit, to the shell
            OLDEST   age of the oldest ready message
            URGENT   the same of its most urgent
            WAITING  what is ready, by urgency
            IN/S     published a second
            OUT/S    acknowledged a second
            P95      19 of 20 waited at most so long
            F full         limit reached, or dropped
            N no consumer  it waits, nobody takes
            B behind       older and older for 10s
            D dead +N      so many died just now
            P paused       lends nothing for now
            urgent █▓▒░· bulk  any key goes back

        "#]],
    );
    press(&mut state, "q");
    assert!(!state.shows_help);
    assert_eq!(press(&mut state, "q"), Deed::Quit);
}

fn many(count: usize) -> State {
    let mut state = State::new("http://127.0.0.1:15672", "/", Sort::Name, 1_000);
    let named = |at| QueueNow { name: format!("queue-{at:04}"), ..QueueNow::default() };
    state.put_all((0..count).map(named).collect());
    state
}

/// The names of the first and the last in the window, and of the chosen one.
fn window(state: &State) -> String {
    let (window, chosen) = state.window();
    let name = |at: usize| window[at].name.trim_start_matches("queue-").to_owned();
    format!("{}..{} {}", name(0), name(window.len() - 1), name(chosen))
}

#[test]
fn the_window_follows_the_chosen_one_through_thousands() {
    let mut state = many(5_000);
    draw(&mut state, 80, 24, PLAIN);
    let mut after = |key: Key| {
        state.key(key);
        window(&state)
    };
    assert_eq!(after(Key::Up), "0000..0017 0000");
    assert_eq!(after(Key::Down), "0000..0017 0001");
    assert_eq!(after(Key::PageDown), "0002..0019 0019");
    assert_eq!(after(Key::Up), "0002..0019 0018");
    assert_eq!(after(Key::End), "4982..4999 4999");
    assert_eq!(after(Key::Down), "4982..4999 4999");
    assert_eq!(after(Key::PageUp), "4981..4998 4981");
    assert_eq!(after(Key::Home), "0000..0017 0000");
    state.key(Key::End);
    draw(&mut state, 80, 10, PLAIN);
    assert_eq!(window(&state), "4995..4999 4999");
    draw(&mut state, 80, 24, PLAIN);
    assert_eq!(window(&state), "4982..4999 4999");
}

#[test]
fn the_chosen_one_stays_chosen_when_the_order_changes() {
    let mut state = many(3);
    draw(&mut state, 80, 24, PLAIN);
    state.key(Key::Down);
    let mut queues: Vec<QueueNow> = many(3).list().cloned().collect();
    queues[2].sums.ready = 5;
    state.sort = Sort::Ready;
    state.put_all(queues.clone());
    assert_eq!(window(&state), "0002..0001 0001");
    // One that is gone gives way to the first.
    queues.remove(1);
    state.put_all(queues);
    assert_eq!(window(&state), "0002..0000 0002");
}

#[test]
fn a_filter_is_typed_in_kept_and_dropped() {
    let mut state = many(200);
    draw(&mut state, 80, 24, PLAIN);
    press(&mut state, "/Q*19?");
    assert_eq!(state.list().len(), 0);
    for _ in 0..5 {
        state.key(Key::Backspace);
    }
    press(&mut state, "019q");
    assert_eq!(state.list().len(), 0);
    state.key(Key::Backspace);
    assert!(picture(&draw(&mut state, 80, 24, PLAIN)).contains("\n/019█\n"));
    assert_eq!((state.list().len(), state.known()), (11, 200));
    state.key(Key::Enter);
    assert!(picture(&draw(&mut state, 80, 24, PLAIN)).contains("11 of 200 queues"));
    assert_eq!(press(&mut state, "j"), Deed::Draw);
    state.key(Key::Esc);
    assert_eq!(state.list().len(), 200);
    assert_eq!(window(&state).split(' ').next_back(), Some("0190"));
}

#[test]
fn keys_change_pace_and_order_and_a_broker_that_is_slow_is_asked_less() {
    let mut state = many(1);
    press(&mut state, "+");
    assert_eq!(state.interval, 2_000);
    press(&mut state, "---");
    assert_eq!(state.interval, 200);
    press(&mut state, "-");
    assert_eq!(state.interval, 200);
    state.answered(Health::default(), 700);
    assert_eq!(state.pause(), 2_800);
    assert!(picture(&draw(&mut state, 80, 24, PLAIN)).contains("every 2.8s, the broker is slow · by name"));
    press(&mut state, "s");
    assert_eq!(state.sort, Sort::Trouble);
    assert_eq!(press(&mut state, "p"), Deed::Draw);
    assert!(picture(&draw(&mut state, 80, 24, PLAIN)).contains("PAUSED"));
    assert_eq!(press(&mut state, "p"), Deed::Poll);
    assert_eq!([state.key(Key::Interrupt), state.key(Key::Suspend)], [Deed::Quit, Deed::Suspend]);
}

#[test]
fn a_queue_that_goes_while_it_is_open_leads_back_to_the_list() {
    let mut state = state();
    state.key(Key::Enter);
    state.put_opened("executions", None, Holders::default());
    let seen = picture(&draw(&mut state, 80, 12, PLAIN));
    assert!(seen.contains("\nqueue executions is gone\n") && seen.contains("2 queues"), "{seen}");
    // The answer of a poll that was on its way when it was left.
    state.put_opened("executions", None, Holders::default());
    assert_eq!(state.list().len(), 2);
}

#[test]
fn nothing_is_shown_as_nothing() {
    let mut state = many(0);
    assert!(picture(&draw(&mut state, 80, 24, PLAIN)).contains("\nno queues\n"));
    assert_eq!(state.key(Key::Enter), Deed::Draw);
    for key in [Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Home, Key::End] {
        state.key(key);
    }
}

#[test]
fn the_same_frame_as_text() {
    let text = super::text::text(&state());
    expect![[r#"
        overtake 0.1.0, http://127.0.0.1:15672: ready
        3 queues, ready 9,360, leased 7, in 124/s, out 61/s, dead 4

        QUEUE           READY  OLDEST  URGENT  WAITING       IN/S  OUT/S  LEASED  P95  DEAD  DELAYED  STATE
        executions      9,348   2h01m   1m01s  █▒··········   123     41       0  9ms     0        0  full
        mails.outgoing     12   800ms   800ms  ▒▒▒▒▒▒▒▒▒▒▒▒   1.0     20       7  9ms     4        0  dead +1
        reports             0       -       -                   -      -       0    -     0        0  paused
    "#]]
    .assert_eq(&anstream::adapter::strip_str(&text).to_string());
}

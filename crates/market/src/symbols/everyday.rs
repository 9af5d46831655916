//! English words that are also the name or the ticker of something.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::words;

/// Tickers that are English words: in lower case they are that word and nothing else.
const WORDLIKE: &str = "\
    ace act acts adventure ai air alice all alpha alpine alt amp and anime ant any ape arc ark array ars art at \
    auction audio aura auto ava awe baby bad badger bake bal ball banana band bank bar bard base bat bath be beam \
    bear beat bed bee bel bell best bet beta big bio bird bit black block blue blur board bob bomb bond bone book \
    boom border bot bounty box boy brain bread break bridge broccoli buddy build bull burger bus by cake call can \
    cap car card care case cash cat catch centre chain chat chess chip city civic claw clear click cloak cloud club \
    coin combo come cookie cool cop core corn cow cream credit crew crown cube current cut cyber dam data day deal \
    deep deer degen dent diamond dip dock dog dogs door dope down dream drift drop dusk dust earn earth east easy \
    eden edge egg elf else end enemy epic era etc ever evil eye fair fan far farm fast fate father fear feel fees ff \
    fight file film fire firm fish fit flag flame flip floor flow flower fly fog food fool for force forest form \
    forth fox frame free friend front fuel fun fund funk future gain game gas gate gem get ghost giant gift giggle \
    glow go goal goat god gold good gps grass gravity green grow guild gun hair hall hard hat have head heart heat \
    hedge hero hi high hippo hive hold hole home hood hook hop hope hot house huge human hype hyper ice icon id \
    idea idol if image in index infinity info init ink ins io iq iris iron it jam jasmine jet job joe join joy juice \
    jump just keep kernel key kid kill kind king kiss kite la lab lady lamb land last launch law layer lazy lead \
    leaf leash leg legend lend lens less let level lever life lift light lime lina line link lion list lit live load \
    loan lock log long look loom loop lot love luck lucky lung mad magic mail main man mana map marble mark market \
    mask mass mat match math matter maze me media meet melt meme memory mental mercy merge merit met metal meter \
    micro mile milk mill mind mine mint mir mirror mist mix mob mod mode mom monkey moo moon more moss most mother \
    mouth move movie much mud multi muse music must my nano nas natural near neck net never new news newt next nice \
    night nil no noon not note nova now nu nuke null nut oasis ocean of off og oil old on one only ooh oops open \
    opera or oracle orange orbit orca order origin os our out over own pack page paint palm panda paper parcel park \
    part party pass path pay peace peak pearl people perp pet phone photo pick pie pig pine pipe pixel place plain \
    plan planet plant play plume plus poe point poke pole poly pond pool poor pop port portal porto post pot power \
    pray prime print prism pro prom prompt proof props prove public pull pump pundit punk pure push put quack quick \
    quiz radar rain ram rare rate raw ray reach real red reef rent rep request rest rich ride ring rise river \
    road roast robo rock role roll rome ron room root rope rose round route row rub rug rule run rush sad safe saga \
    sage sahara salt sand santos save say scale scare school score scout screen seal seed self sell send sense set \
    shell shift ship shoe shop short show side sign silk silly silver sin sing sir six sky slice slim slip slow \
    smart smile smoke snap snow so soap sock soft solar solid solo solve some son song soon sort soul soup \
    space spark spell spider spike spin spirit spot spring square stable stage star start state stay step stick \
    stock stone stop storage store storm story strike strong struck style sub suit summer sun super supra sure sushi \
    swap sweat sweet swell swim sword syrup table tag take talk tank tap tape target task taste tax team tell ten \
    term test text than that the then they thing think this thunder tick tide tie tiger time tin tip tire titan to \
    toe token tomato ton tool top torch torn total touch tower town towns toy track trade train trap tree tribe \
    trick trip troll troy true trump trust truth try tube tune turbo turtle twin two type under unit up us use user \
    usual utility vacation valley value van vanity vector veil vein verse very vest vet via vibe vic vice video view \
    villa vine viral virtual vision vital vite voice void vow voxel wage wait wake walk wall wallet wan want war \
    warm wash watch water wave waves wax way we wealth wear web week weird well west whale what wheel white wife \
    wild will win wind wine wing wings winter wire wise wish wolf woo wood word work world worm worth wow yam year \
    yes yield you young zebra zero zone zoo";

/// Names that are ordinary words, and ordinary words that look like a misspelt name. The former name the asset
/// only where nothing else is said and something shows that a market is meant; the latter never do.
const ORDINARY: &str = "\
    across altar amp aragon arbor ardor armor astor audits augur automat automata automate bakery balance balancer \
    banco bangor beefy benji binary bitten blocks bounce bucks candies celestial cello chili chilis chilli citizen civic \
    compound constitution content contents convex cortex curve decree decreed dent dimension dogs dusk either \
    ellipsis enzyme esther eternity ethel ethereal fandom flaming flare flux fusion gifts golem graph gravity \
    harmony harvest helium horizen horizon icon immutable immutably initial inject internet jupiter just juventus \
    khyber komodo linear looping lucia lumens maker mantle mantra maple margin marin marlin marlins marlon martin \
    marvin merlin metal metas minas mirror mobile movement nano national negro nerves nervous neutron nexus nulls numer \
    numeral oasis ocean omni ontology optim optimise optimist optimize orchid ordinals origin osmosis pancakes \
    phoenix pixels polka polygons polymath portal prided prince princes proper prospero quant quantum radiant radicle reads reals redis \
    reef regis render request reserve rippled ripples ronin rubble rumble saga scroll secret shale shiva singularity \
    skate sky slayer solar sonic space stack stacks staff stakes stale stargate stark status steam steel steep steer \
    stein stella steps stern storm storms stormy stratis stream streamer streams strike sun swipe swiped synapse \
    synthetic talkers teller tensor terre terri terry tethered thorn threshold ticket tickets tinkers tirades treasure treasures trust turbo ultra usual \
    vault vaults venus verge vulcan wormhole yearn yen";

/// Names in several words that are said of other things as well.
const ORDINARY_PHRASES: &[&str] = &[
    "ac milan",
    "alien worlds",
    "as roma",
    "atletico madrid",
    "1 inch",
    "big time",
    "chain link",
    "fc barcelona",
    "fc porto",
    "manchester city",
    "one inch",
    "paris saint germain",
    "santos fc",
    "secret network",
    "space and time",
];

/// Names that are words, but of which the asset is what most people mean who say nothing else.
const FAMILIAR: &str = "avalanche cosmos optimism polygon ripple sandbox stellar terra tether tron";

/// Tickers that are also abbreviations, names or rare words of their own: good in lower case, but not among
/// many words that mean nothing here.
const TERSE: &str = "\
    aca ace ada ae algo amb apt arpa ast atom aud bb chr comp cos ctr dai dar dash dia dot edo \
    eng erg etc fil fis flux form gala hc iota lista luna metis mina mira nav neo nom om omg ont op \
    perl pol ppt pros qi rad rei ren req rune sapien sc scr sei slp sol sui syn sys tao theta tia tko tnt tst \
    uma uni wal zen";

/// Tickers that are better known as something else, in capitals too: of clubs, cars, parts, insurances.
const ACRONYMS: &str = "acm ar asr ata atm crv edu ens fet gmt juv lazio nfp psg";

/// Whether a folded ticker is better known as something else than an asset.
pub(super) fn is_acronym(folded: &str) -> bool {
    ACRONYMS.split_ascii_whitespace().any(|acronym| acronym == folded)
}

/// Tickers that most people know: among a few words that mean nothing here they are still the asset.
const FAMOUS: &str = "ada avax bch bnb btc doge dot eth link ltc pepe shib sol ton trx usdc usdt xlm xmr xrp";

pub(super) fn is_famous(ticker: &str) -> bool {
    let mut famous = FAMOUS.split_ascii_whitespace();
    famous.any(|famous| famous.eq_ignore_ascii_case(ticker))
}

/// Tickers that are words, but of no goods: with nothing but "price" beside them the asset is meant.
const PRICED: &str = "ape arb link mana near sand ton";

/// Whether a folded word with nothing but "price" beside it is a ticker.
pub(super) fn is_priced(folded: &str) -> bool {
    PRICED.split_ascii_whitespace().any(|priced| priced == folded)
}

fn set(text: &'static str) -> HashSet<&'static str> {
    text.split_ascii_whitespace().collect()
}

/// Whether a folded word is an English one that is also a ticker: such a ticker is meant only in capitals,
/// in a pair, or with its quote. Single letters and plain numbers are words too.
pub(super) fn is_wordlike(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set(WORDLIKE));
    let mut letters = folded.chars();
    let single = letters.next().is_some_and(|c| c.is_ascii()) && letters.next().is_none();
    single || folded.chars().all(char::is_numeric) || WORDS.contains(folded) || words::sense(folded).is_some()
}

/// Whether a folded word is an English one, or nearer to one than to a misspelt name.
pub(super) fn is_ordinary(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set(ORDINARY));
    WORDS.contains(folded) || ORDINARY_PHRASES.contains(&folded) || is_familiar(folded) || is_wordlike(folded)
}

pub(super) fn is_familiar(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set(FAMILIAR));
    WORDS.contains(folded)
}

/// Whether a folded ticker may be short for something else.
pub(super) fn is_terse(folded: &str) -> bool {
    folded.chars().count() < 3 || TERSE.split_ascii_whitespace().any(|terse| terse == folded)
}

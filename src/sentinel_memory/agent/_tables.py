"""Tables of words that say little, deny, or refer to a person, for comparing what texts say.

Spellings are folded as everywhere (no case, no accents), by the code where that is not easily
written. The tables need not be whole: what is
missing costs a credit or lets one through, in that language only.
"""

from __future__ import annotations

from typing import Final

from .._basics.words import tokens

__all__ = [
    "ADDRESSES",
    "AVOIDANCE",
    "BEFORE_PLACES",
    "FUNCTION_WORDS",
    "GERMAN",
    "HANGUL_PARTICLES",
    "NAMING",
    "NEGATORS",
    "PREDICATES",
    "RESIDENCE",
    "TASTES",
    "UNSPACED_ADDRESSES",
    "UNSPACED_FUNCTION",
    "UNSPACED_LITTLE",
    "UNSPACED_NEGATORS",
    "UNSPACED_PRONOUNS",
    "WITHOUT",
    "folded",
]


def folded(word: str) -> str:
    """A word of a table in the spelling in which texts are read."""
    return word if word.isascii() else "".join("".join(run) for run in tokens(word))


def _each(words: str) -> tuple[str, ...]:
    return tuple(map(folded, words.split()))


# Function words. Words of one or two letters never count, and words of three letters count half, so
# the short function words stand here, too.
FUNCTION_WORDS: Final = frozenset(
    _each(
        # English
        "a about after all also always an and any are as at be because been before but by can could"
        " did do does for from had has have he her him his how i if in into is it its just me more"
        " most much my of on one only or our out over own she should since so some than that the"
        " their them then there these they this those to too under until up very was we were what"
        " when where which while who whom whose why will with would yes you your user guest"
        " customer client person said says told"
        # German
        " aber alle als also am auch auf aus bei bin bis bist da dann das dass der des dich"
        " die hat dies diese dieser dir doch du durch ein eine einem einen einer eines er es"
        " fur haben"
        " habe hast ich ihm ihn ihnen ihr ihre ihrem ihren im in ist ja kann mein meine meinem"
        " meinen meiner mich mir mit muss nach noch nur ob oder sehr sein seine sich sie sind so"
        " uber um und uns unser unsere von vor was weil wenn wer wie wir wird zu zum zur"
        # French
        " ai as au aux avec avez avoir ca car ce ces cette comme dans de depuis des donc du elle en"
        " est et etes eu il ils je la le les leur lui ma mais me mes moi nos notre nous on ont"
        " ou par puisque quand que qui sa se ses si sont suis ta te tes toi tous"
        " tu un une vos votre vous"
        # Spanish, Portuguese, Italian
        " al como con cual cuando del desde donde el ella ellos en entre era eres es esa ese eso"
        " esta este esto estoy ha hay la le les lo los mas mi mis muy nos nuestra nuestro o"
        " para"
        " pero por porque puedo que se si sobre soy su sus tambien te tengo tiene tienes tu tus un"
        " una uno usted y ya ao aos com da das do dos ela ele em eu foi isso mas meu minha na nas"
        " no nos os ou para pela pelo por que sao se seu seus sou sua suas tem tenho uma voce voces"
        " ai al alla alle anche ci che chi col come cosa da dal dalla dei del della delle di e gli"
        " ha hai ho il io la lei li lo loro lui ma me mi mia mie miei mio nel nella noi per perche"
        " piu quale quando questa questo se sei si sono sta su sua suo suoi ti tua tuo un una visto"
        # Czech, Polish, Croatian
        " aby ale ano asi az byl byla bylo by co dnes do i ja jak jako je jeho jeji jejich jen jest"
        " jestli jsem jsi jsou jste k kam kde kdo kdy kdyz ktera ktere ktery mam mame mate ma me mi"
        " mne moje muj na nad nas nase o od on ona oni po podle pro proto protoze pri s se si"
        " sva svuj ta tak take tam te ted ten to tu tvuj ty u uz v vam vas vase ve vsak vy z za ze"
        " bo ci czy dla gdy gdzie jej jego jestem jestes juz ktory ktora lub masz moj moja moje mu"
        " nasz oraz po przez sa sie skoro sobie tak tego tej ten to tylko twoj twoja w wiec z"
        # Russian
        " а в во вам вас ваш ваша ваше вашего вашей вы да для до его ее если есть еще же за и из"
        " или"
        " их к как когда который кто ли меня мне мной мой моя мое моего моей мы на над нас наш но о"
        " об он она они от по под поэтому при с со свой так также там тебе тебя то тоже только ты у"
        " уже чем что это этот я"
        # Turkish, Dutch, Scandinavian
        " ama bana ben benim bir biz bu cok da de diye en gibi her icin ile ise ki kim mi"
        " mu ne o ona onun sen senin siz sizin su var ve veya ya daha"
        " aan alle als bij dan dat de deze dit een en er had heb hebt heeft het"
        " hij"
        " ik in is je jij jouw jullie maar me mijn naar nog nu of om onze ook op over"
        " te tot u uit uw van veel voor want was wat we wel wie wij zal ze zich zij zijn zo"
        " att av det dig din du ej ett for fran han har hon jag med mig min och om pa"
        " sig som vad var vi ar"
        # Greek
        " και το τα τη την τον του της των τους τις στη στην στο στον στα σας σου μου μας με σε για"
        " απο που να θα ειναι ειμαι εχω εχεις εχετε η ο οι μια ενα εναν"
        # Arabic, Hebrew, Persian
        " في من على الى عن ان انا انت انتم هو هي هم نحن هذا هذه ذلك التي الذي كان كانت لان لذلك عند"
        " عندي عندك لدي لديك لك لي مع او ثم قد كل ما به بها את של על עם זה זאת הוא היא אני אתה אתם"
        " יש לי לך גם כי אם או"
        # Hindi
        " मैं मुझे मेरा मेरी मेरे मुझ हम आप आपको आपका आपकी आपके तुम यह वह है हैं हूँ हूं था थी"
        " थे का की के को से में"
        " पर और या भी तो ही लिए इसलिए कि जो एक"
    )
)

# To live somewhere, to work as something, to be called something: the place or the name is the fact
# that an answer uses.
PREDICATES: Final = frozenset(
    _each(
        "live lives living wohne wohnt wohnen wohnst lebe lebt bydlim bydli bydlis bydlite ziju"
        " zije"
        " zijete habite habites habitez habitons vis vit vivez vivo vive vives viven vivi"
        " vivimos moro"
        " mora moras mieszkam mieszka mieszkasz zyje живу живет живете живешь yasiyorum"
        " yasiyorsunuz"
        " oturuyorum oturuyorsunuz woon woont bor lakom elek μενω μενει μενεις μενετε اسكن تسكن"
        " يسكن"
        " اعيش تعيش रहता रहती रहते"
        " work works working name named called arbeite arbeitet heisst heisse pracuji pracuje"
        " jmenuje"
        " jmenuji travaille appelle llama llamo trabajo trabaja lavoro lavora chiama chamo chama"
        " trabalho trabalha pracuje nazywa nazywam работаю работает зовут adi calisiyorum heet"
        " heter"
        " नाम"
    )
)
"""Words that only say that somebody lives, works or is called."""

TASTES: Final = frozenset(
    _each(
        "like likes eat eats drink drinks mag magst mogen esse isst essen trinke trinkt trinken"
        " gusta gustan gustar como come comes comen bebo bebe jim jime jis ji piju pije pijete"
        " rad rada lubie lubisz lubi jem jesz pijesz mange manges mangez bois buvez aime aimes"
        " aimez mangio mangi mangia bevo bevi beve piace ем ешь едите ест пью пьет пьете люблю"
        " любите любит खाता खाती खाते पीता पीते पसंद lust eet drink"
    )
)
"""Words that say that somebody likes, eats or drinks; a negation denies the thing, not them."""

NAMING: Final = (
    *("heiss", "is called", "my name", "name is", "jmenuj", "llam", "appell", "chiam", "chamo"),
    *(
        "chama",
        "nazywa",
        "зовут",
        "叫",
        "名前",
        "이름",
        "adim",
        "नाम",
        "اسمي",
        "heter",
        "heet",
        "λεν",
    ),
)
"""Beginnings of words for names: an answer that gives the name unasked uses the memory."""

WITHOUT: Final = frozenset(
    _each("without ohne bez sans sin senza sem utan uden uten zonder без χωρις بدون בלי")
)
"""Negators that deny the next word and nothing else."""

NEGATORS: Final = frozenset(
    _each(
        "no not never none nobody nothing neither nor without cannot cant wont dont doesnt didnt"
        " isnt arent wasnt werent couldnt shouldnt wouldnt havent hasnt hadnt aint avoid avoids"
        " nicht kein keine keinen keinem keiner nie niemals ohne"
        " ne pas jamais sans aucun aucune non senza nunca sin jamas nao nem sem tampoco"
        " neni nejsem nejsi nejsou nejste nemam nema nemate nemaji nikdy bez zadny zadne nejim"
        " nejis"
        " nejite neji nepiju nepijes nepijete nepije nechci nechce nechcete nesnasim nesnasite"
        " nesnasi nemuzu nemuze nemuzete nesmi nesmim nesmite nesmite nepouzivam nepouziva"
        " nie nigdy zaden zadna zadnych"
        " не нет никогда без ни нельзя нету"
        " ni nikada nem soha inte aldrig ikke aldri ingen inga utan uden uten geen niet nooit"
        " zonder"
        " degil yok asla yemiyorum yemiyorsunuz yemem icmem icmiyorum icmiyorsunuz yemeyin"
        " नहीं मत न कभी बिना لا ليس ليست لم لن غير بدون ما لست δεν μην ποτε χωρις לא אין בלי אף نه"
    )
)
UNSPACED_NEGATORS: Final = (
    *("ない", "ませ", "ませぬ", "なく", "なか", "ず", "抜き", "なし", "除"),
    *("不", "没", "沒", "无", "無", "别", "別", "未", "非", "禁"),
    *("않", "없", "못", "안먹", "안마", "제외", "뺐", "ไม่", "មិន", "မ"),
)

AVOIDANCE: Final = (
    *("allerg", "alerg", "alerj", "intoler", "avoid", "hate", "dislik", "celia", "coelia"),
    *(
        "аллерг",
        "непереносим",
        "αλλεργ",
        "uczulen",
        "unvertrag",
        "nesnasi",
        "afraid",
        "scared",
        "meide",
        "vermeid",
    ),
    *("アレルギ", "過敏", "过敏", "알레르기", "แพ้", "एलर्जी", "حساسية", "אלרג", "苦手", "忌口"),
)
"""Beginnings of words for avoiding: an answer that leaves the thing out uses the memory."""

# Forms that address the asker: the subject, mostly with a form of be, have or live.
ADDRESSES: Final = frozenset(
    _each(
        "you're youre you|are you|have you|live are|you as|a your you|don you|do"
        " du|bist bist|du sie|sind sind|sie dein deine deinem deinen deiner ihr ihre ihrem ihren"
        " du|hast sie|haben sie|wohnen du|wohnst"
        " jsi jste mas mate tvuj tvoje tva vas vase vasi vasem bydlis bydlite"
        " tu|es vous|etes es|tu etes|vous ton ta tes votre vos tu|as vous|avez tu|habites"
        " eres tienes vives tu tus usted sei hai vivi tuo tua tuoi voce tens moras sua seu"
        " jestes masz twoj twoja twoje mieszkasz panstwo"
        " ты вы вас вам тебя тебе ваш ваша ваше вашего вашей твой твоя живете живешь"
        " siz sizin sen senin bist hebt je|bent u|bent jouw uw du|ar du|har din ditt"
        " आप आपको आपका आपकी आपके لديك عندك انت موعدك سكن تسكن εισαι ειστε εχεις εχετε"
    )
)
UNSPACED_ADDRESSES: Final = (
    "你",
    "您",
    "さん",
    "あなた",
    "お客",
    "ですね",
    "とのこと",
    "님",
    "으시",
    "คุณ",
)

UNSPACED_FUNCTION: Final = frozenset(
    "我你您他她它们的是在了和有也都就还要会能很那这个着吗呢吧啊把被给对从到与或但所以因为为"
    "今天们请住叫"
)
"""Ideographs that say little: a pair with one of them counts half, a pair of them nothing."""

UNSPACED_PRONOUNS: Final = (
    *("我", "你", "您", "他", "她", "私", "僕", "俺", "彼女", "彼", "自分", "あなた", "お客様"),
    *(
        "저는",
        "제가",
        "나는",
        "내가",
        "저의",
        "당신",
        "고객님",
        "입니다",
        "있어요",
        "있습니다",
        "있으시",
    ),
    *(
        "합니다",
        "해요",
        "살아요",
        "삽니다",
        "살고",
        "예요",
        "이에요",
        "에게",
        "에서",
        "하는",
        "이름은",
    ),
    *("ดิฉัน", "ฉัน", "ผม", "คุณ", "เขา", "เธอ"),
    *("ครับ", "ค่ะ", "ของ", "ที่", "และ", "ดังนั้น", "อยู่"),
)
"""Letters that never count, nor do pairs with one of them."""

UNSPACED_LITTLE: Final = frozenset(
    "はがをにのでともへやかなたてすまいうるれらりんだっよねさしこそあくきつけみえちおめせ"
)
HANGUL_PARTICLES: Final = frozenset("에은는이가을를의로도와과요")
"""Endings of Hangul words: the pair that they close does not count."""

RESIDENCE: Final = (
    *("live in", "lives in", "living in", "moved to", "city", "town", "hometown", "residence"),
    *("wohn", "lebe in", "bydl", "ziji", "ziju", "habit", "vivo en", "vivo a", "vive a", "vive en"),
    *("moro em", "mora em", "mieszka", "жив", "yasiyor", "oturuyor", "woon", "bor i", "μεν"),
    *(
        "住",
        "살아",
        "삽니다",
        "살고",
        "อยู่",
        "أسكن",
        "اسكن",
        "أعيش",
        "रहत",
        "mesto",
        "stadt",
        "ville",
    ),
)
"""Beginnings of words for living: an answer that gives the place unasked uses the memory."""

GERMAN: Final = frozenset(_each("der die das und ich ist ein eine nicht mit sie den dem bin"))
"""Words that show that a text is in a language in which every noun has a capital."""
BEFORE_PLACES: Final = frozenset(_each("in nach aus"))

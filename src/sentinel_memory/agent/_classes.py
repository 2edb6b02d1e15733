"""Number words, and classes of words that are not interchangeable, such as months and currencies.

Spellings are folded. A missing word lets a wrong credit through, in its language.
"""

from __future__ import annotations

from typing import Final

from ._tables import folded

__all__ = ["CLASSES", "NUMBER_WORDS", "UNSPACED_CLASSES"]

# Number words from two up, in the order of the numbers: "one" is an article in most languages.
_COUNTED: Final = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn",
    "dva tri ctyri - sest sedm osm devet deset jedenact dvanact trinact ctrnact patnact",
    "dve - styri - - - - - - - dvanast trinast - patnast",
    "deux trois quatre cinq - - huit neuf - onze douze treize quatorze quinze",
    "dos tres cuatro cinco seis siete ocho nueve diez - doce trece catorce quince",
    "- - quattro cinque - sette otto nove dieci undici dodici tredici quattordici quindici",
    "dois - quatro - - sete oito - dez - doze treze - -",
    "dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec jedenascie dwanascie - - -",
    "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать - - -",
    "две трех четырех пяти шести семи восьми девяти десяти - двенадцати - - -",
    "iki uc dort bes alti yedi sekiz dokuz - - - - - -",
    "twee drie - vijf zes zeven - negen tien - twaalf dertien veertien vijftien",
    "tva tre fyra fem - sju atta nio - elva tolv tretton fjorton femton",
    "δυο τρεις τεσσερις πεντε εξι επτα οκτω εννεα δεκα εντεκα δωδεκα - - -",
    "- τρια τεσσερα - - εφτα οχτω εννια - - - - - -",
    "दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह - - -",
    "اثنين ثلاثة اربعة خمسة ستة سبعة ثمانية تسعة عشرة - - - - -",
    "اثنان ثلاث اربع خمس ست سبع ثماني تسع عشر - - - - -",
)
_TENS: Final = (
    "twenty thirty forty fifty sixty seventy eighty ninety hundred",
    "zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig hundert",
    "dvacet tricet ctyricet padesat sedesat sedmdesat osmdesat devadesat sto",
    "vingt trente quarante cinquante soixante - - - cent",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento",
    "vinte trinta quarenta cinquenta sessenta - oitenta - cem",
    "dwadziescia trzydziesci czterdziesci piecdziesiat - - - - -",
    "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто сто",
    "yirmi otuz kirk elli altmis yetmis seksen doksan yuz",
    "twintig dertig veertig vijftig zestig zeventig tachtig negentig honderd",
)
NUMBER_WORDS: Final[dict[str, str]] = {
    folded(word): str(number)
    for rows, first, step in ((_COUNTED, 2, 1), (_TENS, 20, 10))
    for row in rows
    for number, word in zip(range(first, 200, step), row.split(), strict=False)
    if word != "-"
}
NUMBER_WORDS.update(dozen="12", tucet="12", dutzend="12", douzaine="12", docena="12", noon="12")

# Another member of a class is another fact. The members have the same order in every row; spellings
# of one member are joined by a slash.
_MONTHS: Final = (
    "january/jan february/feb march april/apr may june/jun july/jul august/aug"
    " september/sept/sep october/oct november/nov december/dec",
    "januar/janner februar marz - mai juni juli - - oktober - dezember",
    "leden/ledna/lednu unor/unora/unoru brezen/brezna/breznu duben/dubna/dubnu"
    " kveten/kvetna/kvetnu cerven/cervna/cervnu cervenec/cervence/cervenci srpen/srpna/srpnu"
    " zari rijen/rijna/rijnu listopad/listopadu prosinec/prosince/prosinci",
    "janvier fevrier mars avril - juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio - aprile maggio giugno luglio - settembre ottobre - dicembre",
    "janeiro fevereiro marco - maio junho julho - setembro outubro novembro dezembro",
    "styczen/stycznia luty/lutego marzec/marca kwiecien/kwietnia maj/maja czerwiec/czerwca"
    " lipiec/lipca sierpien/sierpnia wrzesien/wrzesnia pazdziernik/pazdziernika"
    " -/listopada grudzien/grudnia",
    "январь/января/январе февраль/февраля/феврале март/марта/марте апрель/апреля/апреле"
    " май/мая/мае июнь/июня/июне июль/июля/июле август/августа/августе"
    " сентябрь/сентября/сентябре октябрь/октября/октябре ноябрь/ноября/ноябре"
    " декабрь/декабря/декабре",
    "ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik",
    "januari februari maart - mei - - augustus - - - -",
    "ιανουαριου φεβρουαριου μαρτιου απριλιου μαιου ιουνιου ιουλιου αυγουστου σεπτεμβριου"
    " οκτωβριου νοεμβριου δεκεμβριου",
    "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
    "يناير فبراير مارس ابريل مايو يونيو يوليو اغسطس سبتمبر اكتوبر نوفمبر ديسمبر",
)
_DAYS: Final = (
    "monday tuesday/tue wednesday/wed thursday/thu friday/fri saturday sunday",
    "mondays tuesdays wednesdays thursdays fridays saturdays sundays",
    "montag/montags dienstag/dienstags mittwoch/mittwochs donnerstag/donnerstags"
    " freitag/freitags samstag/samstags/sonnabend sonntag/sonntags",
    "pondeli/pondelky utery/uterky streda/stredu/stredy ctvrtek/ctvrtky patek/patky"
    " sobota/sobotu/soboty nedele/nedeli",
    "lundi/lundis mardi/mardis mercredi/mercredis jeudi/jeudis vendredi/vendredis"
    " samedi/samedis dimanche/dimanches",
    "lunes martes miercoles jueves viernes sabado/sabados domingo/domingos",
    "lunedi martedi mercoledi giovedi venerdi sabato domenica",
    "segunda/segundas terca/tercas quarta/quartas quinta/quintas sexta/sextas - -",
    "poniedzialek/poniedzialki wtorek/wtorki sroda/srode/srody czwartek/czwartki"
    " piatek/piatki sobota/sobote/soboty niedziela/niedziele",
    "понедельник/понедельникам вторник/вторникам среда/среду/средам четверг/четвергам"
    " пятница/пятницу/пятницам суббота/субботу/субботам воскресенье/воскресеньям",
    "pazartesi sali carsamba persembe cuma cumartesi pazar",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "mandag tisdag onsdag torsdag fredag lordag sondag",
    "δευτερα τριτη τεταρτη πεμπτη παρασκευη σαββατο κυριακη",
    "सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार",
    "الاثنين الثلاثاء الاربعاء الخميس الجمعه/الجمعة السبت الاحد",
    "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
)
_CURRENCIES: Final = (
    "euro/euros/eur/eura/eure/евро dollar/dollars/dollari/dolar/dolaru/dolary/dolares/usd"
    "/доллар/доллара/долларов/dolar pound/pounds/gbp/libras/livres/pfund franc/francs/franken"
    "/chf/franku koruna/korun/koruny/czk/kc/kronor/kroner yen/jpy rupee/rupees/रुपये"
    " zloty/zlotych/pln рубль/рубля/рублей lira/lir/liras real/reais peso/pesos percent/prozent"
    "/procent/pourcent/porcentaje/процентов",
)
_LENGTHS: Final = (
    "mm/millimetres/millimeters cm/centimetres/centimeters/centimetr/centimetru/zentimeter"
    " metre/metres/meter/meters/metr/metru/metros km/kilometres/kilometers/kilometer/kilometru"
    "/kilometros/километров mile/miles inch/inches foot/feet yard/yards",
)
_WEIGHTS: Final = (
    "gram/grams/gramm/gramu/grammes/gramos kg/kilo/kilos/kilogram/kilograms/kilogramu pound/lb"
    "/lbs ounce/ounces/oz ton/tons/tonnes/tun mg/milligrams",
)
_SIZES: Final = ("kb mb gb/gigabytes tb pb",)
_TIMES: Final = (
    "seconds/sekund/sekunden/secondes/segundos/секунд"
    " minute/minutes/min/minuten/minut/minuty/minutos/minuti/минут"
    " hour/hours/stunde/stunden/hodin/hodiny/heures/horas/ore/часов/часа/godzin/saat"
    " day/days/tag/tage/tagen/dni/dny/jours/dias/giorni/дней/gun"
    " week/weeks/woche/wochen/tyden/tydny/tydnu/semaines/semanas/settimane/недель/недели/hafta"
    " month/months/monat/monate/monaten/mesic/mesice/mesicu/mois/meses/mesi/месяцев"
    " year/years/jahr/jahre/jahren/let/roky/ans/anos/anni/лет/года/yil",
)
_HALVES: Final = (
    "xam/morning/morgens/vormittags/rano/dopoledne/matin/manana/manha/mattina/utra/утра/utro"
    "/sabah/ochtend/صباحا/सुबह"
    " xpm/afternoon/nachmittags/odpoledne/tarde/pomeriggio/apres/дня"
    "/middag/ظهرا/दोपहर/evening/abends/vecer/soir/sera/noche/noite/вечера/wieczorem/aksam"
    "/avond/مساء/शाम",
)
_SIDES: Final = (
    "left/links/vlevo/gauche/izquierda/sinistra/esquerda/слева/lewo"
    " right/rechts/vpravo/droite/derecha/destra/direita/справа/prawo/sag",
    "north/norden/sever/nord/norte/север south/suden/jih/sud/sur/sul/юг",
)
CLASSES: Final[dict[str, tuple[str, int]]] = {
    folded(spelling): (name, number)
    for name, rows in (
        ("length", _LENGTHS),
        ("weight", _WEIGHTS),
        ("size", _SIZES),
        ("side", _SIDES),
        ("money", _CURRENCIES),
        ("time", _TIMES),
        ("half", _HALVES),
        ("month", _MONTHS),
        ("day", _DAYS),
    )
    for row in rows
    for number, member in enumerate(row.split())
    for spelling in member.split("/")
    if spelling != "-"
}
"""Spelling to its class and its number in it; different numbers are different facts."""

UNSPACED_CLASSES: Final[tuple[tuple[str, str, int], ...]] = (
    *(
        (f"{word}{sign}", "day", n)
        for n, sign in enumerate("一二三四五六")
        for word in ("周", "星期", "礼拜")
    ),
    *((f"{word}{sign}", "day", 6) for sign in "日天" for word in ("周", "星期")),
    *((f"{sign}曜", "day", n) for n, sign in enumerate("月火水木金土日")),
    *((f"{sign}요일", "day", n) for n, sign in enumerate("월화수목금토일")),
    *(
        (f"วัน{day}", "day", n)
        for n, day in enumerate(("จันทร์", "อังคาร", "พุธ", "พฤหัส", "ศุกร์", "เสาร์", "อาทิตย์"))
    ),
    *(
        ("上午", "half", 0),
        ("早上", "half", 0),
        ("午前", "half", 0),
        ("오전", "half", 0),
        ("เช้า", "half", 0),
    ),
    *(("下午", "half", 1), ("午後", "half", 1), ("오후", "half", 1), ("บ่าย", "half", 1)),
    *(("晚上", "half", 1), ("夜", "half", 1), ("저녁", "half", 1), ("เย็น", "half", 1)),
    *(("欧元", "money", 0), ("ユーロ", "money", 0), ("유로", "money", 0)),
    *(("美元", "money", 1), ("ドル", "money", 1), ("달러", "money", 1)),
    *(("人民币", "money", 90), ("日元", "money", 5), ("원", "money", 91)),
)

"""The handbook's binary documents: what stands in each of them."""

from __future__ import annotations

from tests.examples.book import epub
from tests.examples.opendocument import odt
from tests.examples.pieces import Grid, Head, To, para
from tests.examples.portable import pdf
from tests.examples.sheets import xlsx
from tests.examples.slides import Slide, pptx
from tests.examples.word import docx


def expenses() -> bytes:
    """people/expenses.docx"""
    return docx(
        "Expenses",
        "people, expenses",
        [
            Head(1, "Expenses"),
            para(
                "What you spend for the company comes back to you with the next salary, if this form and the receipts are in by"
                " the 18th of the month. The allowances for a day and a night stand in ",
                To("travel", "travel.md"),
                ".",
            ),
            Head(2, "What needs a receipt"),
            para(
                "Everything over £12. A photograph is enough, if the tax number can be read. For a ferry ticket that was eaten by"
                " the printer, a signed note does it, twice a year."
            ),
            Head(2, "What is not paid"),
            Grid(
                [
                    ["Thing", "Why"],
                    ["Fines", "They are yours, also when the van was in a hurry"],
                    ["Alcohol", "Only with guests, and then at most £15 a head"],
                    ["Seat reservations", "Paid, up to £9 a journey"],
                    ["Oilskins", "The company's, from the stores in the loft"],
                ]
            ),
            Head(2, "Who signs"),
            para(
                "Your manager, up to the ",
                To("approval limits", "../purchasing/approval-limits.md"),
                ". Nobody signs their own form.",
            ),
            Head(2, "Kilometres"),
            para(
                "Private cars: £0.45 a mile in Scotland, €0.40 a kilometre in Portugal, 90 tenge a kilometre in Kazakhstan."
            ),
        ],
    )


def audit() -> bytes:
    """quality/audit-2026.docx"""
    return docx(
        "Internal audit 2026",
        "quality, audit",
        [
            Head(1, "Internal audit 2026"),
            para(
                "Held in Tavira on 2 and 3 September 2026 by a colleague from Almaty. It followed the ",
                To("quality policy", "policy.md"),
                ".",
            ),
            Head(2, "Finding 1: torque key out of calibration"),
            para(
                "The torque key of bench three was last checked 26 months ago; the limit is twelve. Seals fitted with it:"
                " 41 turbines. All were measured again, two were over 6 Nm and got a new gland, as the ",
                To("turbine manual", "../products/tide-turbine-tt7.rst#changing-the-seal"),
                " asks for.",
            ),
            para("Action: the key's date of expiry is printed on its handle. Done on 10 September."),
            Head(2, "Finding 2: bills without a delivery number"),
            para(
                "Nine of sixty bills had been paid without the number of the delivery slip. See ",
                To("invoice checks", "../purchasing/invoice-checks.html"),
                ".",
            ),
            para("Action: the accounting program refuses a bill without it. Due in November."),
            Head(2, "What was good"),
            para(
                "Every incident of the year had its report within ten days. The hand-over notes of the ",
                To("duty engineers", "../ops/on-call.md"),
                " were a pleasure to read.",
            ),
        ],
    )


def price_list() -> bytes:
    """products/price-list.xlsx"""
    return xlsx(
        "Price list 2026",
        "products, prices",
        {
            "Buoys": [
                ["SKU", "Model", "Price, £", "Delivery, weeks", "Sheet"],
                ["HP-200-SP", "Sandpiper", 6400, 6, To("Sandpiper", "hp-200-sandpiper.md")],
                ["HP-350-GN", "Gannet", 18900, 10, To("Gannet", "hp-350-gannet.md")],
                ["HP-500-AL", "Albatross", 52500, 26, To("Albatross", "hp-500-albatross.html")],
            ],
            "Parts": [
                ["SKU", "Part", "Price, £", "Note", "See"],
                ["TT7-03", "Tide turbine", 740, "with seal kit", To("turbine", "tide-turbine-tt7.rst")],
                [
                    "SK-71",
                    "Seal kit",
                    38,
                    "two lip seals, sleeve, grease, torque key",
                    To("service", "tide-turbine-tt7.rst#service-interval"),
                ],
                [
                    "NL-48",
                    "Power pack",
                    1150,
                    "dangerous goods class 9",
                    To("supplier", "../purchasing/suppliers.md#northlight-batteries"),
                ],
                [
                    "CG-2",
                    "Copper guard",
                    240,
                    "for warm water",
                    To("why", "../ops/incidents/2026-03-barnacle-drift.rst#copper-guard"),
                ],
                ["ZA-12", "Anode", 9.5, "sold in pairs", To("mooring kits", "mooring-kits.adoc")],
                ["HG-2-R", "Gateway, spare", 2310, "with antenna", To("runbook", "../ops/runbooks/gateway-restart.md")],
            ],
            "Used buoys": [
                ["SKU", "Model", "Price, £", "Condition"],
                ["HP-200-SP-U", "Sandpiper, used", 3100, "new seal, new anodes, one year of warranty"],
                ["HP-350-GN-U", "Gannet, used", 9800, "new pack, new seal, one year of warranty"],
            ],
        },
    )


def roadmap() -> bytes:
    """products/roadmap-2027.pptx"""
    return pptx(
        "Roadmap 2027",
        "products, roadmap",
        [
            Slide("Roadmap 2027", [["Decided by the steering meeting; dates are quarters, not promises"]]),
            Slide(
                "Firmware 5",
                [
                    ["Winter trial from November 2026, two weeks for each image"],
                    ["Release in the second quarter of 2027"],
                    ["TB2 frames carry the current profile: ", To("format", "../telemetry/format.md#versions")],
                    ["One signing key for each region: ", To("signing keys", "../ops/signing-keys.md")],
                ],
                "If the winter is mild the trial goes on until a storm of force 10 has been seen.",
            ),
            Slide(
                "Albatross Mark II",
                [
                    ["Solar collar, twice the sleeping power"],
                    [
                        "Second quarter of 2028, after the ",
                        To("decision of February", "../meetings/2026-02-11-steering.md#albatross-mark-ii"),
                    ],
                ],
                "Both waiting customers were told on 13 February 2026.",
            ),
            Slide(
                "What we stop",
                [
                    ["The adapter AD-9 for the old turbine TT7-02 ends in December 2027"],
                    ["Gateways HG-1 are switched off on 30 June 2027"],
                ],
            ),
        ],
    )


def training() -> bytes:
    """people/training.odt"""
    return odt(
        "Sea safety training",
        "people, training, safety",
        [
            Head(1, "Sea safety training"),
            para(
                "Two days in the harbour of Oban or at the nautical school of Olhão. Everybody who goes on board must have passed."
            ),
            Head(2, "What it covers"),
            Grid(
                [
                    ["Day", "Morning", "Afternoon"],
                    ["1", "Life jackets, radio, man overboard", "Cold water, in the water"],
                    ["2", "Lifting gear and slings", "Recovering a drifting buoy"],
                ]
            ),
            Head(2, "Validity"),
            para(
                "The certificate is valid for three years. It is renewed in one day, at the earliest six months before it lapses. A lapsed"
                " certificate means the whole course again."
            ),
            Head(2, "Booking"),
            para(
                "The quality lead (",
                To("roles", "roles.md#products-and-quality"),
                ") holds twelve places a quarter. New colleagues come first, as ",
                To("onboarding", "onboarding.md"),
                " promises. Cost centre 4410.",
            ),
            Head(2, "Portuguese"),
            para("The rules for Tavira are told in ", To("segurança no mar", "../pt/seguranca-no-mar.md"), "."),
        ],
    )


def field_manual() -> bytes:
    """quality/field-manual.epub"""
    return epub(
        "Field manual",
        {
            "laying.xhtml": (
                "Laying a buoy",
                '<p>Choose the hour before <a href="https://handbook.halyardpine.example/glossary/#slack-water">slack water</a>. The sinker goes first, from the stern, '
                'with the rope flaked on deck and nobody inside a bight.</p><h2 id="scope">Scope</h2><p>Depth at high water times the scope of '
                'the <a href="https://handbook.halyardpine.example/products/mooring-kits/">kit</a>. Write the position of the sinker down, not that of the buoy: '
                "the watch circle is drawn around it.</p>",
            ),
            "recovering.xhtml": (
                "Recovering a buoy",
                "<p>Approach against the current. Take the lifting eye, never the mast: the mast breaks at 600 N. In a swell over one metre "
                'wait, or tow. Before the rotor leaves the water put the pin in, see <a href="servicing.xhtml#pin">the pin</a>.</p>'
                '<p>If it was adrift, photograph the mooring: <a href="https://handbook.halyardpine.example/ops/runbooks/lost-buoy/">lost buoy</a>.</p>',
            ),
            "servicing.xhtml": (
                "Servicing on deck",
                '<h2 id="pin">The pin</h2><p>Red, on a lanyard, in every tool roll. A rotor without a pin starts by itself in a breeze.</p>'
                '<h2 id="growth">Growth</h2><p>Plastic scrapers only. Weigh what comes off: more than four kilograms on one side is reported, because it '
                'makes <a href="https://handbook.halyardpine.example/ops/incidents/2026-03-barnacle-drift/">the waves too high</a>.</p>'
                '<h2 id="anodes">Anodes</h2><p>Less than a third left: change. Wire-brush the contact until it shines.</p>',
            ),
        },
    )


def datasheet() -> bytes:
    """products/datasheet-gannet.pdf"""
    site = "https://handbook.halyardpine.example"
    return pdf(
        "Gannet HP-350 datasheet",
        "products, datasheet",
        [
            [
                Head(1, "Gannet HP-350"),
                para("Tide-powered weather and wave buoy for the continental shelf. Order number HP-350-GN."),
                Head(2, "Measurements"),
                para(
                    "Wind speed 0 to 75 m/s, ±0.3 m/s. Air pressure 800 to 1100 hPa, ±0.2 hPa. Sea temperature -2 to 35 °C, ±0.05 K. Significant wave"
                    " height 0.1 to 25 m, ±4 per cent, from a motion unit sampled at 20 Hz."
                ),
                Head(2, "Power"),
                para(
                    "One tide turbine, 11 W at 1.2 m/s. Power pack 48 Ah at 25.6 V, lithium iron phosphate. Sixty-one hours without tide. Seal service"
                    " every 18 months: ",
                    To("turbine manual", f"{site}/products/tide-turbine-tt7/"),
                    ".",
                ),
                Head(2, "Environment"),
                para(
                    "Operating temperature -20 to 45 °C. Survives winds of 70 m/s and breaking waves of 15 m. Not for use in ice thicker than 5 cm."
                ),
            ],
            [
                Head(1, "Installation"),
                para(
                    "Depth 15 to 250 m. Needs a current of at least 0.5 m/s at springs. Mooring: kit MK-250, see ",
                    To("mooring kits", f"{site}/products/mooring-kits/"),
                    ".",
                ),
                Head(2, "Data"),
                para(
                    "Frames of 48 bytes every ten minutes by satellite and by radio at 868 MHz. The format is open: ",
                    To("frame format", f"{site}/telemetry/format/"),
                    ". Readings as JSON: ",
                    To("web API", "../telemetry/api.html"),
                    ".",
                ),
                Head(2, "Warranty"),
                para(
                    "Two years on the electronics, five on the hull if it was not painted. A buoy that was opened by anyone but us has none."
                ),
                Head(2, "Approvals"),
                para(
                    "CE, UKCA, IALA O-143 colour and light. Radio licence free of charge in the United Kingdom and the European Union."
                ),
            ],
        ],
    )


DOCUMENTS = {
    "people/expenses.docx": expenses,
    "people/training.odt": training,
    "products/datasheet-gannet.pdf": datasheet,
    "products/price-list.xlsx": price_list,
    "products/roadmap-2027.pptx": roadmap,
    "quality/audit-2026.docx": audit,
    "quality/field-manual.epub": field_manual,
}

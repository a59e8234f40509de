"""Twelve subjects in eleven documents, in Portuguese, with three themes that cross: small enough to be worked out by hand.

Who names whom is written beside the texts (`NAMES`), so that a test can work out the graph without clew.
"""

from __future__ import annotations

from pathlib import Path

#: Path → (title, text). The title is a subject, but for the last document, whose second heading is one.
DOCUMENTS: dict[str, tuple[str, str]] = {
    "aluguer/reserva.md": (
        "Reserva",
        "A reserva é um pedido que guarda uma bicicleta por duas horas. Quem faz a reserva aceita a tarifa do dia e deixa a caução.",
    ),
    "aluguer/tarifa.md": (
        "Tarifa",
        "A tarifa é um preço que se cobra por hora iniciada. A tarifa e a caução pagam-se com o contrato na mão.",
    ),
    "aluguer/contrato.md": (
        "Contrato",
        "O contrato é um documento que se assina na entrega. O contrato cita a tarifa, a reserva e a vistoria.",
    ),
    "aluguer/caucao.md": (
        "Caução",
        "A caução é uma quantia que se devolve no regresso. O contrato fixa a caução e a reserva desconta-a.",
    ),
    "oficina/vistoria.md": (
        "Vistoria",
        "A vistoria é um exame de dez minutos antes de cada saída. A vistoria mede o travão e a corrente.",
    ),
    "oficina/travao.md": (
        "Travão",
        "O travão é um mecanismo que aperta o aro com duas pastilhas. O travão gasto espera por uma peça.",
    ),
    "oficina/corrente.md": (
        "Corrente",
        "A corrente é um conjunto de elos que leva a força à roda. A corrente lava-se em cada vistoria.",
    ),
    "oficina/peca.md": (
        "Peça",
        "A peça é um artigo que vem do armazém em três dias. Cada peça da corrente tem um número.",
    ),
    "percursos/ciclovia.md": (
        "Ciclovia",
        "A ciclovia é uma faixa azul que liga o rio ao mercado. A ciclovia faz parte de cada roteiro.",
    ),
    "percursos/roteiro.md": (
        "Roteiro",
        "O roteiro é um caminho de vinte quilómetros com três paragens. O roteiro pede capacete e segue a ciclovia.",
    ),
    "percursos/capacete.md": (
        "Capacete",
        (
            "O capacete é uma proteção que se ajusta com uma mão. O capacete passa pela vistoria.\n\n"
            "## Monitor\n\nO monitor é um funcionário que abre o grupo. O monitor conhece o roteiro e confere o capacete."
        ),
    ),
}

SUBJECTS = (
    "Reserva", "Tarifa", "Contrato", "Caução", "Vistoria", "Travão", "Corrente", "Peça", "Ciclovia", "Roteiro", "Capacete", "Monitor",
)  # fmt: skip

#: Which subjects each document names, as a reader finds them.
NAMES: dict[str, tuple[str, ...]] = {
    "aluguer/reserva.md": ("Reserva", "Tarifa", "Caução"),
    "aluguer/tarifa.md": ("Tarifa", "Caução", "Contrato"),
    "aluguer/contrato.md": ("Contrato", "Tarifa", "Reserva", "Vistoria"),
    "aluguer/caucao.md": ("Caução", "Contrato", "Reserva"),
    "oficina/vistoria.md": ("Vistoria", "Travão", "Corrente"),
    "oficina/travao.md": ("Travão", "Peça"),
    "oficina/corrente.md": ("Corrente", "Vistoria"),
    "oficina/peca.md": ("Peça", "Corrente"),
    "percursos/ciclovia.md": ("Ciclovia", "Roteiro"),
    "percursos/roteiro.md": ("Roteiro", "Capacete", "Ciclovia"),
    "percursos/capacete.md": ("Capacete", "Vistoria", "Monitor", "Roteiro"),
}

#: The themes, as somebody who sorts the subjects by hand would have them.
THEMES = (
    frozenset({"Reserva", "Tarifa", "Contrato", "Caução"}),
    frozenset({"Vistoria", "Travão", "Corrente", "Peça"}),
    frozenset({"Ciclovia", "Roteiro", "Capacete", "Monitor"}),
)


def write_documents(root: Path) -> None:
    """Write the documents below a folder."""
    for path, (title, text) in DOCUMENTS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"# {title}\n\n{text}\n", "utf-8")

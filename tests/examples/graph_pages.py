"""A small collection with eleven subjects, eleven pages and three themes, in Portuguese, whose pages tell what their subjects are."""

from __future__ import annotations

from pathlib import Path

PAGES = {
    "transporte/coleta.md": (
        "Coleta",
        (
            "A coleta é a etapa em que o motorista recebe a carga no endereço do remetente. A coleta depende da janela de entrega "
            "combinada."
        ),
    ),
    "transporte/janela.md": (
        "Janela de entrega",
        (
            "A janela de entrega é o intervalo em que o destinatário pode receber a carga. Toda coleta respeita uma janela de entrega "
            "e uma rota."
        ),
    ),
    "transporte/rota.md": (
        "Rota",
        "A rota é uma sequência de paradas calculada na véspera. A rota considera a frota disponível.",
    ),
    "transporte/frota.md": (
        "Frota",
        (
            "A frota é o conjunto de veículos da empresa. Cada veículo da frota segue uma rota por dia, e a coleta usa o veículo mais "
            "próximo."
        ),
    ),
    "energia/painel.md": (
        "Painel solar",
        "O painel solar é um módulo que converte luz em corrente contínua. O painel solar carrega a bateria durante o dia.",
    ),
    "energia/bateria.md": (
        "Bateria",
        "A bateria é um banco de células que guarda a energia do painel solar. O inversor consome a bateria à noite.",
    ),
    "energia/inversor.md": (
        "Inversor",
        "O inversor é um aparelho que transforma corrente contínua em alternada. O medidor registra o que o inversor entrega.",
    ),
    "energia/medidor.md": (
        "Medidor",
        "O medidor é um instrumento que registra o consumo da casa. O medidor fica ao lado do inversor e da bateria.",
    ),
    "pessoas/ferias.md": (
        "Férias",
        "As férias são um período de descanso de trinta dias. O pedido de férias passa pela folha de pagamento.",
    ),
    "pessoas/folha.md": (
        "Folha de pagamento",
        (
            "A folha de pagamento é um documento que reúne salários e descontos. A folha de pagamento fecha o banco de horas. As "
            "férias entram nela."
        ),
    ),
    "pessoas/banco.md": (
        "Banco de horas",
        (
            "O banco de horas é um registro de horas extras a compensar. O banco de horas consta do acordo da frota. Quem tira férias "
            "zera o banco de horas."
        ),
    ),
}


def write_pages(root: Path) -> None:
    """Write the pages below a folder."""
    for path, (title, text) in PAGES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"# {title}\n\n{text}\n", "utf-8")

"""The papers of this distribution, as its entry point `penchant.papers` names them."""

from penchant_papers.beyond import paper as beyond
from penchant_papers.lyu2023 import paper as lyu2023
from penchant_papers.moroshko2020 import paper as moroshko2020
from penchant_papers.notsawo2025 import paper as notsawo2025
from penchant_papers.probe import paper as probe
from penchant_papers.woodworth2020 import paper as woodworth2020

papers = (woodworth2020, moroshko2020, lyu2023, notsawo2025, beyond, probe)

"""The demo scripts' functions that write, read and compare boxes in answers."""

import importlib.util

import pytest

from programs import REPOSITORY

FILE = REPOSITORY / "tools" / "demo" / "boxes.py"
SPEC = importlib.util.spec_from_file_location("demo_boxes", FILE)
boxes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(boxes)

FOUND = [("coin", (0.1, 0.2, 0.5, 0.6)), ("card", (0, 0.005, 0.3, 1)), ("coin", (0.7, 0.7, 0.9, 0.9))]


def test_boxes_are_grouped_by_label_and_round_trip():
    text = boxes.write(FOUND, labels=True)
    assert text == "<ref>coin</ref><box>(10,20),(50,60)</box><box>(70,70),(90,90)</box><ref>card</ref><box>(0,0),(30,100)</box>"
    assert boxes.read(f"I see {text}.") == [("coin", (10, 20, 50, 60)), ("coin", (70, 70, 90, 90)), ("card", (0, 0, 30, 100))]
    assert boxes.read(boxes.write(FOUND[:1], labels=False)) == [("", (10, 20, 50, 60))]


@pytest.mark.parametrize("answer, good", [
    ("[10,10,50,50]", True), ("at [14,10,54,50]", True), ("[20,10,60,50]", False), ("[40,10,80,50]", False), ("[10,10,50,50][0,0,5,5]", False),
    ("nothing", False),
    ("<ref>car</ref><box>(10,10),(50,50)</box>", False)])
def test_answer_is_correct_only_with_exactly_all_boxes(answer, good):
    assert boxes.agree(answer, "[10,10,50,50]") == good


def test_box_is_matched_once():
    one = [("", (0, 0, 10, 10))]
    assert boxes.hits(one * 2, one) == boxes.hits(one, one * 2) == 1

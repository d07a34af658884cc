"""Translations are complete, extracted from the code, and compiled whole."""

import os
from pathlib import Path

import pytest
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

import core
from core.locale_extraction import Untranslated, collect, untranslated, update_catalogue
from core.locale_files import InvalidCatalogue, compile_catalogues

PROJECT = Path(core.__file__).resolve().parent.parent
CHINESE = PROJECT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
    '"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
)


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_every_translation_is_there_and_has_the_variables_of_its_text() -> None:
    with CHINESE.open("rb") as file:
        assert untranslated(read_po(file, locale="zh_Hans")) == []


def test_every_marked_text_of_the_project_is_in_the_chinese_catalogue() -> None:
    with CHINESE.open("rb") as file:
        known = {(message.id, message.context) for message in read_po(file, locale="zh_Hans")}
    found = {(message.id, message.context) for message in collect(PROJECT) if message.id}
    assert found - known == set(), "run manage.py extract_locale and translate what it lists"


def test_a_catalogue_is_compiled_once_and_again_after_a_change(tmp_path: Path) -> None:
    source = write(
        tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po", HEADER + 'msgid "Ready"\nmsgstr "已完成"\n'
    )
    target = source.with_suffix(".mo")
    assert compile_catalogues(tmp_path) == [target]
    assert compile_catalogues(tmp_path) == []
    write(source, HEADER + 'msgid "Ready"\nmsgstr "好了"\n')
    os.utime(source, (1, 1))  # older than the compiled file, as after checking out an earlier version
    assert compile_catalogues(tmp_path) == [target]
    with target.open("rb") as file:
        assert read_mo(file)["Ready"].string == "好了"
    assert sorted(path.name for path in source.parent.iterdir()) == ["django.mo", "django.po"]


def test_a_translation_nobody_confirmed_is_left_out(tmp_path: Path) -> None:
    entries = '#, fuzzy\nmsgid "Held"\nmsgstr "已扣费"\n\nmsgid "Ready"\nmsgstr "已完成"\n'
    write(tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po", HEADER + entries)
    [target] = compile_catalogues(tmp_path)
    with target.open("rb") as file:
        assert [message.id for message in read_mo(file) if message.id] == ["Ready"]


def test_a_broken_catalogue_is_named_and_the_compiled_one_stays(tmp_path: Path) -> None:
    source = write(
        tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po", HEADER + 'msgid "Ready"\nmsgstr "已完成"\n'
    )
    [target] = compile_catalogues(tmp_path)
    before = target.read_bytes()
    write(source, HEADER + 'mgsid "Ready"\nmsgstr "已完成"\n')
    os.utime(source, (1, 1))
    with pytest.raises(InvalidCatalogue, match=r"django\.po of zh_Hans"):
        compile_catalogues(tmp_path)
    assert target.read_bytes() == before


def test_texts_are_collected_from_python_and_templates_and_translations_are_kept(tmp_path: Path) -> None:
    write(
        tmp_path / "videos" / "words.py",
        "from x import gettext_lazy, ngettext_noop, pgettext\n"
        'A = gettext_lazy("One "\n                 "sentence.")\n'
        'B = ngettext_noop("{n} video", "{n} videos")\n'
        'C = pgettext("chip", "Ready")\n',
    )
    write(
        tmp_path / "templates" / "page.html",
        "{% load i18n %}\n  <p>\n{% translate 'Cloud space' %}\n        </p>\n"
        "   {% blocktranslate trimmed count n=n %}\n      {{ n }} file\n"
        "   {% plural %}\n      {{ n }} files\n"
        "   {% endblocktranslate %}\n {{ x|default:_('None') }}\n",
    )
    write(tmp_path / "tests" / "words.py", 'gettext("not ours")\n')
    target = write(
        tmp_path / "django.po",
        HEADER + 'msgid "One sentence."\nmsgstr "一句话。"\n\nmsgid "Gone"\nmsgstr "没有了"\n',
    )

    left = update_catalogue(tmp_path, target, locale="zh_Hans")

    with target.open("rb") as file:
        catalogue = read_po(file, locale="zh_Hans")
    assert {(message.id, message.context) for message in catalogue if message.id} == {
        ("One sentence.", None),
        (("{n} video", "{n} videos"), None),
        ("Ready", "chip"),
        ("Cloud space", None),
        (("%(n)s file", "%(n)s files"), None),
        ("None", None),
    }
    assert catalogue["One sentence."].string == "一句话。"
    assert [message.string for message in catalogue.obsolete.values()] == ["没有了"]
    assert [problem.msgid for problem in left] == ["%(n)s file", "Cloud space", "None", "Ready", "{n} video"]
    content = target.read_bytes()
    update_catalogue(tmp_path, target, locale="zh_Hans")
    assert target.read_bytes() == content


@pytest.mark.parametrize(
    ("text", "translation"),
    [("{amount} is held.", "已预扣 {amout}。"), ("%(n)s files", "个文件"), ("{a} of {b}", "{a}")],
)
def test_a_translation_with_other_variables_is_listed(tmp_path: Path, text: str, translation: str) -> None:
    target = write(tmp_path / "django.po", f'{HEADER}msgid "{text}"\nmsgstr "{translation}"\n')
    with target.open("rb") as file:
        assert untranslated(read_po(file, locale="zh_Hans")) == [Untranslated(text, "other variables")]

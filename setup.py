"""Packaging: every fact comes from settings.ini."""

from configparser import ConfigParser
from pathlib import Path
from setuptools import find_packages, setup

here = Path(__file__).parent
parser = ConfigParser(delimiters=["="])
parser.read(here / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]

ending = "_requirements"
extras = {k.removesuffix(ending): v.split() for k, v in cfg.items() if k.endswith(ending)}
optional = [spec for name, specs in extras.items() if name != "dev" for spec in specs]
extras["all"] = optional
extras["dev"] += optional
minor = int(cfg["min_python"].split(".")[1])

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=cfg["git_url"],
    keywords=cfg["keywords"].split(),
    license="Apache-2.0",
    license_files=["LICENSE"],
    packages=find_packages(include=[cfg["lib_name"], f"{cfg['lib_name']}.*"]),
    package_data={cfg["lib_name"]: ["py.typed"]},
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg["requirements"].split(),
    extras_require=extras,
    entry_points={
        "console_scripts": cfg["console_scripts"].split("\n"),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_path']}._modidx:d"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Natural Language :: English",
        "Typing :: Typed",
        *(f"Programming Language :: Python :: 3.{m}" for m in range(minor, 14)),
    ],
    zip_safe=False,
)

"""Words of which fictional scholars are made. No name, place, venue or title means a real one."""

from __future__ import annotations

NAMES: tuple[tuple[str, str, str, str], ...] = (
    (
        "English",
        "Corwin Alden Merrick Thaddeus Rowan Jasper",
        "Elowen Maribel Tamsin Hester Willa Odette",
        "Ashgrove Penhallow Thistlewood Wetherby Larkmoor Quillfeather Brackenridge Hollowell",
    ),
    (
        "Chinese",
        "Weilin Boran Zhiyuan Haoming Qingyu Ruifan",
        "Yuxian Meilan Xiaoqin Lingzhi Suwen Anruo",
        "Ouyan Shangwen Qiaobei Luoheng Beixuan Tanqiu Yunmo Zhuolin",
    ),
    (
        "Hindi",
        "Aravind Devansh Ishaan Rudresh Kirtan Omkar",
        "Saanvika Lavanya Mrinali Chitrani Devika Tanushri",
        "Bhatkande Vardhanam Iyengiri Chandravat Deshmalya Kulkarat Pillaraj Sengupti",
    ),
    (
        "Arabic",
        "Faruq Idris Nabil Samir Tariq Yazan",
        "Amal Dunya Layan Nuha Rasha Zaynab",
        "Al-Qasabi Bint-Harun Darwishi Haddaneh Khalizad Mansurat Nasseriah Zubaydan",
    ),
    (
        "Spanish",
        "Leandro Joaquim Evaristo Ramiro Adelmo Tadeo",
        "Ximena Jacinta Rosalba Elvira Noemí Araceli",
        "Valdecampo Montelirio Aguasverdes Riocabal Peñalosa-Ruy Castromar Fontealba Zarrazúa",
    ),
    (
        "German",
        "Lorenz Anselm Eberhart Konradin Ruprecht Till",
        "Annelind Frauke Irmhild Rosalie Swantje Theda",
        "Birkenfels Großkamp Hagenmüller Kieselbach Löwenthaler Ostermoor Silberzahn Wiesengrund",
    ),
    (
        "French",
        "Aurélien Bastien Corentin Évrard Fulbert Gaspard",
        "Apolline Clothilde Églantine Mahaut Ondine Sidonie",
        "Beaurivage Chantecœur Delaroche-Vive Fontclaire Grandval Montferrier Roseraie Valombreuse",
    ),
    (
        "Yoruba",
        "Adewole Babatemi Folarin Kolade Oluremi Tunmise",
        "Abebisi Enitan Folasayo Morenike Omolara Yetunwa",
        "Adeyinmi Balogbade Fagbolu Ogunlara Olatundun Oyewumire Sowandeh Tijanmola",
    ),
    (
        "Finnish",
        "Aarno Eerikki Ilmari Kaapro Onni Tuomari",
        "Aamu Helka Inkeri Lahja Tuulikki Vieno",
        "Hallavaara Järvikangas Koskimetsä Lehtosuo Mäntyranta Revonsaari Suvilampi Talvikoski",
    ),
    (
        "Japanese",
        "Haruyori Kazunari Masatoki Ryusei Shinobu Tetsuma",
        "Asahina Chizuko Fumino Hotaru Mizuki Sayaka",
        "Amanogawa Fujikure Hoshizora Kiritani Minazuki Onodera-Mori Shirakumo Yamabuki",
    ),
    (
        "Turkish",
        "Alpagut Çınar Doruk Ertuğ Korhan Tunay",
        "Aybike Defne Gülru İpek Nazlıcan Şevval",
        "Akçaova Bozdağlı Demirkuş Gökçınar Karayel Özpınar Taşköy Yıldırmaz",
    ),
    (
        "Polish",
        "Bogumił Dobromir Lesław Mieszko Radosław Zbyszko",
        "Bożena Dobrawa Jagienka Ludmiła Mirosława Żywia",
        "Brzozowiec Dąbrowiecki Jesionka Lipnicki-Wir Modrzejak Olszański-Las Sosnowiak Wierzbicz",
    ),
)
"""(language, names of men, names of women, family names)."""

_PLACES = (
    "Lakeview Northmere Caldera Aldermoor Silverford Eastwick Harrowgate-on-Sea Varnholm Port-Selene Tarnwick Monte-Alba Redcliff "
    "Quayside Ostervik Belmarsh Greenholt Kestrel-Bay Ardenfell Sunharbor Winterbourne-Vale Corvane Lindmoor Marlpit Zephyr-Point"
)
PLACES = _PLACES.split()

KINDS = (
    "University of {}",
    "{} Institute of Technology",
    "{} Polytechnic",
    "National Laboratory of {}",
    "{} State University",
    "{} Research Centre",
    "Royal College of {}",
    "{} School of Engineering",
    "Technical University of {}",
    "{} Institute for Advanced Study",
)

FIELDS: tuple[tuple[str, str], ...] = (
    (
        "information retrieval",
        "dense retrieval, query expansion, learned indexes, conversational search, passage ranking, index compression",
    ),
    (
        "natural language processing",
        "question answering, machine translation, text summarisation, coreference resolution, low-resource languages, dialogue systems",
    ),
    (
        "machine learning",
        "representation learning, active learning, model distillation, uncertainty estimation, federated learning, continual learning",
    ),
    (
        "databases",
        "query planning, stream processing, data cleaning, graph databases, transaction processing, data provenance",
    ),
    (
        "computer vision",
        "object tracking, depth estimation, image segmentation, visual grounding, medical imaging, scene graphs",
    ),
    (
        "robotics",
        "motion planning, grasping, swarm robotics, legged locomotion, simultaneous localisation, human-robot interaction",
    ),
    (
        "networks",
        "network routing, congestion control, edge computing, software-defined networking, sensor networks, satellite links",
    ),
    (
        "security",
        "intrusion detection, applied cryptography, side channels, access control, malware analysis, private computation",
    ),
    (
        "human-computer interaction",
        "accessible interfaces, gaze input, collaborative editing, user modelling, wearable devices, data visualisation",
    ),
    (
        "computational biology",
        "protein folding, gene expression, single-cell analysis, phylogenetics, drug discovery, microbial communities",
    ),
    (
        "theory",
        "graph theory, approximation algorithms, streaming algorithms, computational geometry, combinatorial games, coding theory",
    ),
    (
        "climate informatics",
        "ocean modelling, weather emulation, glacier mapping, flood forecasting, carbon accounting, remote sensing",
    ),
)
"""(field, its topics)."""

POSITIONS: tuple[tuple[str, int], ...] = (
    ("Professor", 20),
    ("Other", 16),
    ("Researcher", 14),
    ("Associate Professor", 14),
    ("Assistant Professor", 10),
    ("Engineer", 10),
    ("Lecturer", 6),
    ("Associate Researcher", 3),
    ("Ph.D", 3),
    ("Senior Engineer", 2),
    ("Assistant Researcher", 2),
)
"""The eleven titles of R-Eval's profiling task, and how many of its hundred questions have each."""

YEARS_IN = {
    "Professor": (18, 34),
    "Associate Professor": (10, 22),
    "Assistant Professor": (5, 12),
    "Lecturer": (4, 20),
    "Researcher": (4, 20),
    "Associate Researcher": (6, 16),
    "Assistant Researcher": (2, 8),
    "Senior Engineer": (10, 25),
    "Engineer": (3, 15),
    "Ph.D": (1, 5),
    "Other": (2, 30),
}
"""Position → fewest and most years since the first publication."""

_ADJECTIVES = (
    "Quiet Patient Sparse Layered Honest Frugal Elastic Adaptive Robust Lazy Nimble Tidy Faithful Gentle Bounded Shallow Deep Steady "
    "Hidden Practical Rapid Silent Modular Cautious Generous Thrifty Restless Balanced Curious Wandering"
)
ADJECTIVES = _ADJECTIVES.split()

_NOUNS = (
    "Indexes Models Graphs Maps Signals Sketches Memories Codes Trees Agents Filters Estimators Kernels Pipelines Embeddings Protocols "
    "Benchmarks Surrogates Annotations Views Policies Samplers Certificates Mirrors"
)
NOUNS = _NOUNS.split()

PATTERNS = (
    "{adjective} {noun} for {topic}",
    "{topic} with {adjective} {noun}",
    "On the Limits of {adjective} {noun} in {topic}",
    "Towards {adjective} {topic}",
    "{noun} that Forget: {adjective} {topic}",
    "How {adjective} Are {noun}? A Study of {topic}",
    "A Survey of {adjective} {noun} in {topic}",
    "Learning {adjective} {noun} from {topic}",
)

VENUES = (
    "Journal of {} Letters",
    "Transactions on {}",
    "Lakeview Symposium on {}",
    "International Workshop on {}",
    "Annals of {}",
    "Northmere Conference on {}",
)

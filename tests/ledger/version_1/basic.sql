BEGIN TRANSACTION;
CREATE TABLE sfumato_entries (
	number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	analyst TEXT NOT NULL, 
	plan_digest TEXT NOT NULL, 
	answer_key TEXT NOT NULL, 
	about INTEGER, 
	loss TEXT NOT NULL, 
	budget TEXT NOT NULL, 
	spent TEXT NOT NULL, 
	analyst_spent TEXT NOT NULL, 
	payload_hash TEXT NOT NULL, 
	time TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "sfumato_entries" VALUES(1,'open','','','',NULL,'','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"0"}','','93f8a9883ff875acc8d764ae44389db4919f49e3565460986db82d2a164dcdb4','2026-11-16T09:28:18.480999+00:00','','1d3ddb63c4420f3783ffcf4eabd8726c2a935c1613bb335e2320a508570e2304','{"ledger_id":"a6ac325b5a4eb2298d82c2e299a4dac9","limit":"{\"delta\":\"0.000001\",\"epsilon\":\"3\"}","population":"crowd"}');
INSERT INTO "sfumato_entries" VALUES(2,'charge','ann','2ca0cd585a80b37331b1d0cd1214ac39bc429b5f049678049d43719181f0408e','ce3328bdd5298d7dbb8d913d5c20d201f325892bd6a4eede71e0d979ff5eb946',NULL,'{"delta":"0","epsilon":"0.5"}','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"0.5"}','{"delta":"0","epsilon":"0.5"}','93570ab7eb8ccf394f13fac23862e6223d38f702ed99a40ec47d7bd009c8faea','2026-11-16T09:28:18.500475+00:00','1d3ddb63c4420f3783ffcf4eabd8726c2a935c1613bb335e2320a508570e2304','e0230da0c4021e134aeb00072942dfd229f76099cc4b98900f85b26635f108ba','{"cells":1,"loss":"{\"epsilon\":\"0.5\"}","measurements":[{"exponent":0,"loss":"{\"epsilon\":\"0.5\"}","name":"n0","noise":"laplace","variance":"8"}]}');
INSERT INTO "sfumato_entries" VALUES(3,'answer','ann','2ca0cd585a80b37331b1d0cd1214ac39bc429b5f049678049d43719181f0408e','ce3328bdd5298d7dbb8d913d5c20d201f325892bd6a4eede71e0d979ff5eb946',2,'','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"0.5"}','{"delta":"0","epsilon":"0.5"}','652e53663257f237599e185ea6e61bfca73792046797830a49187b2d4db15b80','2026-11-16T09:28:18.505088+00:00','e0230da0c4021e134aeb00072942dfd229f76099cc4b98900f85b26635f108ba','fce2c5d01f2e018b639ae1ad96352b4d9a09566bdbb6832c1a9eb53fbd151122','{"integers":{"n0":[42]},"keys":null}');
INSERT INTO "sfumato_entries" VALUES(4,'charge','ann','489b0e1248a09c4d2c844105fefd781297e4de566bbe0a9acc1e2bafeb386bd6','fd5d2fda9d08a42671c721e50b3fdbbf9ab825cf4768805167411846b62e5149',NULL,'{"delta":"0","epsilon":"0.5"}','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"1"}','{"delta":"0","epsilon":"1"}','93570ab7eb8ccf394f13fac23862e6223d38f702ed99a40ec47d7bd009c8faea','2026-11-16T09:28:18.512124+00:00','fce2c5d01f2e018b639ae1ad96352b4d9a09566bdbb6832c1a9eb53fbd151122','232adadcaf403ecd4899133b36a7a62afe7926dba232c1c64c7c77a58ea024e8','{"cells":1,"loss":"{\"epsilon\":\"0.5\"}","measurements":[{"exponent":0,"loss":"{\"epsilon\":\"0.5\"}","name":"n0","noise":"laplace","variance":"8"}]}');
INSERT INTO "sfumato_entries" VALUES(5,'answer','ann','489b0e1248a09c4d2c844105fefd781297e4de566bbe0a9acc1e2bafeb386bd6','fd5d2fda9d08a42671c721e50b3fdbbf9ab825cf4768805167411846b62e5149',4,'','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"1"}','{"delta":"0","epsilon":"1"}','d3b42f0a027c77a3305697e55b8aa816f52288b341b9878dface89c61d924717','2026-11-16T09:28:18.519746+00:00','232adadcaf403ecd4899133b36a7a62afe7926dba232c1c64c7c77a58ea024e8','5d7fcd3d3353f743e3306ac098f09a583587d6cb751b3689b6f4cf3d7e97ef4b','{"integers":{"n0":[41]},"keys":null}');
INSERT INTO "sfumato_entries" VALUES(6,'seen','bob','2ca0cd585a80b37331b1d0cd1214ac39bc429b5f049678049d43719181f0408e','ce3328bdd5298d7dbb8d913d5c20d201f325892bd6a4eede71e0d979ff5eb946',2,'{"delta":"0","epsilon":"0.5"}','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"1"}','{"delta":"0","epsilon":"0.5"}','e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855','2026-11-16T09:28:18.526208+00:00','5d7fcd3d3353f743e3306ac098f09a583587d6cb751b3689b6f4cf3d7e97ef4b','b5dbbc8b920f52fe91e5f1b8b16c53eb985cd49b07a89c2415035fe971906996','');
INSERT INTO "sfumato_entries" VALUES(7,'charge','bob','98b61e3d6a1cc7db0e4452c205e90ec4fe9f4422bdadeee85992e4e75f3ec9a3','eeb6c28eb2d5357ace7c52c0d5d8e2ec66bb6eb6899cdd15ef16f630783f722c',NULL,'{"delta":"0","epsilon":"0.25"}','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"1.25"}','{"delta":"0","epsilon":"0.75"}','c0b5b613f9853511f15a8321e07e71ec6a5631a32a777de40c81773d851e3d99','2026-11-16T09:28:18.531953+00:00','b5dbbc8b920f52fe91e5f1b8b16c53eb985cd49b07a89c2415035fe971906996','9930c629613372361e1a474b23ad79a6f1d711bcc42e266b26ea9b8eb47e1dda','{"cells":1,"loss":"{\"epsilon\":\"0.25\"}","measurements":[{"exponent":0,"loss":"{\"epsilon\":\"0.25\"}","name":"n0","noise":"laplace","variance":"32"}]}');
CREATE TABLE sfumato_head (
	single INTEGER NOT NULL CHECK (single = 1), 
	number INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	budget TEXT NOT NULL, 
	spent TEXT NOT NULL, 
	PRIMARY KEY (single)
);
INSERT INTO "sfumato_head" VALUES(1,7,'9930c629613372361e1a474b23ad79a6f1d711bcc42e266b26ea9b8eb47e1dda','{"delta":"0.000001","epsilon":"3"}','{"delta":"0","epsilon":"1.25"}');
CREATE INDEX sfumato_answers ON sfumato_entries (answer_key) WHERE kind = 'answer';
CREATE UNIQUE INDEX sfumato_seen_once ON sfumato_entries (about, analyst) WHERE kind = 'seen';
CREATE INDEX sfumato_analysts ON sfumato_entries (analyst, number);
CREATE INDEX sfumato_charges ON sfumato_entries (plan_digest, analyst, number) WHERE kind = 'charge';
CREATE UNIQUE INDEX sfumato_one_answer ON sfumato_entries (about) WHERE kind = 'answer';
COMMIT;
